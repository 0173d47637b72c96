# How a target of this project is made.

# What most files include anyway. Asio is not among them: it would cost every target a second and
# would hide which files need it.
set(holdfast_precompiled
  <algorithm> <array> <atomic> <chrono> <coroutine> <cstdint> <deque> <expected> <functional> <map> <memory> <mutex>
  <optional> <span> <string> <string_view> <vector>)

# holdfast_target_defaults(TARGET [NO_PCH])
# NO_PCH is for targets of one file, where the header would be compiled once to be used once.
function(holdfast_target_defaults target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_PCH" "" "")
  target_compile_features(${target} PUBLIC cxx_std_23)
  if(NOT arg_NO_PCH)
    target_precompile_headers(${target} PRIVATE ${holdfast_precompiled})
  endif()
endfunction()

# holdfast_core(NAME KIND SIDE PLATFORM_ROOT)
# Core's one source list, compiled against one side of the seam.
function(holdfast_core name kind side platform_root)
  if(NOT core_sources)
    message(FATAL_ERROR "core/holdfast holds no sources: is this a whole checkout?")
  endif()
  set(root ${PROJECT_SOURCE_DIR}/${platform_root})
  file(GLOB_RECURSE platform_headers CONFIGURE_DEPENDS ${root}/holdfast/platform/*.hpp)
  file(GLOB_RECURSE platform_tables CONFIGURE_DEPENDS ${root}/holdfast/platform/*.def)

  add_library(${name} ${kind} ${core_sources})
  add_library(holdfast::${name} ALIAS ${name})
  holdfast_target_defaults(${name})
  target_sources(${name}
    PUBLIC FILE_SET core TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/core FILES ${core_headers}
    PUBLIC FILE_SET tables TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/core FILES ${core_tables}
    PUBLIC FILE_SET platform TYPE HEADERS BASE_DIRS ${root} FILES ${platform_headers} ${platform_tables})
  # The roots once more: a file set without files contributes none.
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core> $<BUILD_INTERFACE:${root}>)
  target_include_directories(${name} SYSTEM PUBLIC $<BUILD_INTERFACE:${UCX_INCLUDE_DIR}>)
  target_link_libraries(${name} PUBLIC Boost::headers)
  target_compile_definitions(${name} PUBLIC $<$<BOOL:${HOLDFAST_DEV_CHECKS}>:HOLDFAST_DEV_CHECKS=1>)
  # A table of macros means nothing when it is included alone, so only headers are compiled alone.
  set_target_properties(${name} PROPERTIES
    VERIFY_INTERFACE_HEADER_SETS ON
    INTERFACE_HEADER_SETS_TO_VERIFY "core;platform"
    INTERFACE_HOLDFAST_SIDE ${side})
  # A program that asks for two sides is refused when it is configured, not surprised when it runs.
  set_property(TARGET ${name} APPEND PROPERTY COMPATIBLE_INTERFACE_STRING HOLDFAST_SIDE)
endfunction()
