# Options, and the flags that hold for every target.

option(HOLDFAST_WERROR "Treat warnings as errors" OFF)
option(HOLDFAST_DEV_CHECKS "Check callers' preconditions that are too costly for production" OFF)
option(HOLDFAST_SIMULATOR_ONLY "Build the simulator's side alone" OFF)
set(HOLDFAST_SANITIZE "" CACHE STRING "address (with undefined), thread, fuzz, or empty")
set_property(CACHE HOLDFAST_SANITIZE PROPERTY STRINGS "" address thread fuzz)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    # Older ones cannot read libstdc++'s <expected>.
    message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: use clang-19 or newer, or GCC 12 or newer.")
  endif()
  set(holdfast_clang TRUE)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    message(FATAL_ERROR "GCC ${CMAKE_CXX_COMPILER_VERSION} is too old: <expected> needs GCC 12 or newer.")
  endif()
  set(holdfast_clang FALSE)
else()
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER_ID} was never tried: use GCC 12 or clang-19.")
endif()

# Warnings.
add_compile_options(-Wall -Wextra -Wpedantic)
if(HOLDFAST_WERROR)
  add_compile_options(-Werror)
endif()
if(holdfast_clang)
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 at -O2 reports a self-overlapping copy for `std::string s; s = "x"`. There is none.
  # At an atomic behind an intrusive pointer it assumes the null branch and reports a write into nothing.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow)
endif()

# The same sources give the same bytes, wherever the tree lies. Never -march=native and never
# -ffast-math: a run must replay on every machine.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
# Traces name the program that wrote them by its build id.
add_link_options(-Wl,--build-id=sha1)

# Sanitizers. The definitions tell the fiber switch which runtime wants to hear of it.
if(HOLDFAST_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(HOLDFAST_ASAN=1)
elseif(HOLDFAST_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
  add_compile_definitions(HOLDFAST_TSAN=1)
elseif(HOLDFAST_SANITIZE STREQUAL "fuzz")
  if(NOT holdfast_clang)
    message(FATAL_ERROR "HOLDFAST_SANITIZE=fuzz needs clang: GCC has no libFuzzer. Use the preset fuzz.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address)
  add_compile_definitions(HOLDFAST_ASAN=1 HOLDFAST_FUZZ=1)
elseif(NOT HOLDFAST_SANITIZE STREQUAL "")
  message(FATAL_ERROR "HOLDFAST_SANITIZE=${HOLDFAST_SANITIZE}: use address, thread, fuzz or nothing.")
endif()
if(HOLDFAST_SANITIZE AND NOT holdfast_clang)
  # Instrumented code defeats GCC's flow analysis; -Wtsan objects to the fences inside Asio.
  add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds)
  if(HOLDFAST_SANITIZE STREQUAL "thread")
    add_compile_options(-Wno-tsan)
  endif()
endif()

# Speed of the build: a cache for objects and a fast linker, each if it is there.
find_program(HOLDFAST_CCACHE ccache)
mark_as_advanced(HOLDFAST_CCACHE)
if(HOLDFAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these concessions ccache refuses every file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HOLDFAST_CCACHE})
  if(holdfast_clang)
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  else()
    add_compile_options(-fpch-preprocess)
  endif()
endif()
find_program(HOLDFAST_MOLD mold)
mark_as_advanced(HOLDFAST_MOLD)
if(HOLDFAST_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
