# Header, library, and what CMake's find_package and pkg-config need.
#
# SPDX-License-Identifier: Apache-2.0

include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clconv)
configure_package_config_file(cmake/clconvConfig.cmake.in clconvConfig.cmake
    INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(clconvConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)

# The package works wherever it is put: its prefix is seen from the .pc file.
file(RELATIVE_PATH prefix_from_pc
    /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(cmake/clconv.pc.in clconv.pc @ONLY)

install(TARGETS clconv EXPORT clconvTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT clconvTargets NAMESPACE clconv:: DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/clconvConfig.cmake
    ${PROJECT_BINARY_DIR}/clconvConfigVersion.cmake
    DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/clconv.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES include/clconv/clconv.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/clconv)
