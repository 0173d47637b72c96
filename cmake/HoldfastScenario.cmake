# Programs of the simulator. Used by this project and, installed, by others.

# holdfast_simulator_program(TARGET [NO_HEAP])
# What every executable that runs worlds needs besides its own files. NO_HEAP leaves operator new
# alone, for a program that runs no world.
function(holdfast_simulator_program target)
  target_link_libraries(${target} PRIVATE holdfast::holdfast_simulator)
  if(NOT "NO_HEAP" IN_LIST ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:holdfast::holdfast_sim_heap>)
  endif()
  # Scenarios, invariants and models register themselves. From an archive the linker would take only
  # what is named, and the others would be missing without a word.
  set_property(TARGET ${target} PROPERTY LINK_LIBRARY_OVERRIDE
    "WHOLE_ARCHIVE,holdfast_simulator,holdfast::holdfast_simulator")
  target_link_options(${target} PRIVATE -Wl,--build-id=sha1)
endfunction()

# holdfast_add_scenario(NAME [FILE.cpp...])
# An executable NAME: holdfast-sim with the scenarios of the given files besides its own.
function(holdfast_add_scenario name)
  add_executable(${name} ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_23)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:holdfast::holdfast_sim_cli>)
  holdfast_simulator_program(${name})
endfunction()
