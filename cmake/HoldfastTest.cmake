# How a test of this project is made.

set(holdfast_test_environment
  HOLDFAST_BIN=${PROJECT_BINARY_DIR}/bin
  HOLDFAST_BUILD=${PROJECT_BINARY_DIR}
  HOLDFAST_SOURCE=${PROJECT_SOURCE_DIR}
  HOLDFAST_SANITIZE=${HOLDFAST_SANITIZE})
set(supp ${PROJECT_SOURCE_DIR}/tests/sanitizers)
if(HOLDFAST_SANITIZE STREQUAL "thread")
  list(APPEND holdfast_test_environment
    "TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1:suppressions=${supp}/thread.supp")
elseif(HOLDFAST_SANITIZE)
  # Frames live on pooled fiber stacks, which a fake stack would take away from them.
  list(APPEND holdfast_test_environment
    "ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1:check_initialization_order=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "LSAN_OPTIONS=suppressions=${supp}/leak.supp:print_suppressions=0")
endif()

function(holdfast_test_properties name labels timeout processors)
  if(NOT timeout)
    set(timeout 300)
  endif()
  if(NOT processors)
    set(processors 1)
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout} PROCESSORS ${processors} ENVIRONMENT "${holdfast_test_environment}")
endfunction()

# Links TARGET as a program of one side of the seam.
function(holdfast_link_side target side)
  if(side STREQUAL "simulated")
    holdfast_simulator_program(${target})
  else()
    target_link_libraries(${target} PRIVATE holdfast)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# holdfast_test(NAME SIDE real|simulated LABELS l... SOURCES f... [LIBRARIES l...] [TIMEOUT s])
# A GoogleTest program. Sources of a whole directory are passed; a directory that has become empty
# is an error, or a renamed one would take its tests away without a word.
function(holdfast_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SIDE;TIMEOUT" "LABELS;SOURCES;LIBRARIES")
  if(HOLDFAST_SIMULATOR_ONLY AND NOT arg_SIDE STREQUAL "simulated")
    return()
  endif()
  if(NOT arg_SOURCES AND name MATCHES "^(properties|ucx_test)$")
    message(STATUS "${name}: skipped, its room is still empty")
    return()
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "${name} has no sources: was a directory under tests/ or properties/ renamed?")
  endif()
  add_executable(${name} ${arg_SOURCES})
  holdfast_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  holdfast_link_side(${name} ${arg_SIDE})
  add_test(NAME ${name} COMMAND ${name})
  holdfast_test_properties(${name} "${arg_LABELS}" "${arg_TIMEOUT}" "")
endfunction()

# holdfast_script_test(NAME SCRIPT LABELS l... [ARGUMENTS a...] [TIMEOUT s] [PROCESSORS n] [SERIAL])
# SERIAL: nothing else runs at the same time.
# The script finds programs and sources by HOLDFAST_BIN, HOLDFAST_BUILD and HOLDFAST_SOURCE.
function(holdfast_script_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SERIAL" "TIMEOUT;PROCESSORS" "LABELS;ARGUMENTS")
  if(script MATCHES "[.]py$")
    set(interpreter python3)
  else()
    set(interpreter bash)
  endif()
  add_test(NAME ${name} COMMAND ${interpreter} ${script} ${arg_ARGUMENTS})
  holdfast_test_properties(${name} "${arg_LABELS}" "${arg_TIMEOUT}" "${arg_PROCESSORS}")
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# holdfast_bench(FILE): bin/bench/real_x or bin/bench/sim_x, on the side that the name says.
function(holdfast_bench source)
  get_filename_component(name ${source} NAME_WE)
  if(name MATCHES "^real_")
    if(HOLDFAST_SIMULATOR_ONLY)
      return()
    endif()
    set(side real)
  else()
    set(side simulated)
  endif()
  add_executable(bench_${name} ${source})
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/bench)
  holdfast_target_defaults(bench_${name} NO_PCH)
  target_link_libraries(bench_${name} PRIVATE benchmark::benchmark nlohmann_json::nlohmann_json)
  holdfast_link_side(bench_${name} ${side})
endfunction()

# holdfast_fuzzer(FILE [MORE...]): bin/fuzz/NAME, and a test that feeds it for a few seconds, beginning with what stands in
# tests/fuzz/corpus/NAME. What it finds on its way stays in the build directory.
function(holdfast_fuzzer source)
  get_filename_component(name ${source} NAME_WE)
  add_executable(fuzz_${name} ${source} ${ARGN})
  set_target_properties(fuzz_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/fuzz)
  holdfast_target_defaults(fuzz_${name} NO_PCH)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  # Without the replaced operator new: libFuzzer watches the heap itself, and a parser needs no world.
  holdfast_simulator_program(fuzz_${name} NO_HEAP)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(fuzz_${name} SYSTEM PRIVATE ${TOMLPLUSPLUS_INCLUDE_DIR})
  set(found ${PROJECT_BINARY_DIR}/fuzz/${name})
  file(MAKE_DIRECTORY ${found})
  set(seeds ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT EXISTS ${seeds})
    set(seeds)
  endif()
  add_test(NAME fuzz_${name} COMMAND ${PROJECT_BINARY_DIR}/bin/fuzz/${name} -max_total_time=20 -seed=1 -verbosity=0
    -print_final_stats=1 -artifact_prefix=${PROJECT_BINARY_DIR}/ ${found} ${seeds})
  holdfast_test_properties(fuzz_${name} fuzz 120 "")
endfunction()
