# The installed tree:
#   include/holdfast/...                         core, once, for every side
#   include/holdfast-platform-real/...           the real side of the seam
#   include/holdfast-platform-sim/...            the simulated side
#   include/holdfast-simulator/{sim,models,...}  for scenarios written elsewhere
#   lib/cmake/holdfast                           find_package(holdfast [COMPONENTS simulator])

set(holdfast_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
set(holdfast_include ${CMAKE_INSTALL_INCLUDEDIR})

# Two export files: a program that only wants the library must not need the simulator's dependencies.
install(TARGETS holdfast EXPORT holdfast-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET core DESTINATION ${holdfast_include}
  FILE_SET tables DESTINATION ${holdfast_include}
  FILE_SET platform DESTINATION ${holdfast_include}/holdfast-platform-real
  FILE_SET environment DESTINATION ${holdfast_include}/holdfast-platform-real)
install(TARGETS holdfast_sim EXPORT holdfast-simulator-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET core DESTINATION ${holdfast_include}
  FILE_SET tables DESTINATION ${holdfast_include}
  FILE_SET platform DESTINATION ${holdfast_include}/holdfast-platform-sim)
install(TARGETS holdfast_simulator EXPORT holdfast-simulator-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET simulator DESTINATION ${holdfast_include}/holdfast-simulator
  FILE_SET tables DESTINATION ${holdfast_include}/holdfast-simulator)
install(TARGETS holdfast_sim_heap holdfast_sim_cli EXPORT holdfast-simulator-targets
  OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/holdfast)
install(TARGETS holdfast-sim holdfast-smoke holdfast-info RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
file(GLOB pages_1 CONFIGURE_DEPENDS docs/man/*.1)
file(GLOB pages_5 CONFIGURE_DEPENDS docs/man/*.5)
install(FILES ${pages_1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages_5} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)

install(EXPORT holdfast-targets NAMESPACE holdfast:: DESTINATION ${holdfast_cmake_dir})
install(EXPORT holdfast-simulator-targets NAMESPACE holdfast:: DESTINATION ${holdfast_cmake_dir})

configure_package_config_file(cmake/holdfast-config.cmake.in ${PROJECT_BINARY_DIR}/holdfast-config.cmake
  INSTALL_DESTINATION ${holdfast_cmake_dir} NO_SET_AND_CHECK_MACRO)
# 0.x: a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/holdfast-config.cmake
  ${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
  cmake/HoldfastScenario.cmake
  cmake/FindxxHash.cmake
  DESTINATION ${holdfast_cmake_dir})
