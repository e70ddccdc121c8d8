# `cmake --install build` and the Debian packages; packaging/README.md says how.
# Several packages, so that hosts which only run agents need no LibTorch.
include(GNUInstallDirs)
find_package(Python3 COMPONENTS Interpreter)

function(antdt_install_program name component)
  if(TARGET ${name})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  endif()
endfunction()
foreach(program antdt antdtd antdt-instrument antdt-jobd antdt-server antdt-shim)
  antdt_install_program(${program} antdt)
endforeach()
foreach(program antdt-trainer antdt-bench-allreduce)
  antdt_install_program(${program} trainer)
endforeach()

# In a wheel (scripts/wheel) the libraries that these need lie beside them. An old-style run path
# counts for the libraries of those libraries, too. What is installed otherwise has none.
foreach(program antdt antdtd antdt-instrument antdt-jobd antdt-server antdt-shim)
  if(TARGET ${program})
    set_property(TARGET ${program} APPEND PROPERTY BUILD_RPATH "$ORIGIN/../lib")
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  endif()
endforeach()
set_property(TARGET antdt_shared APPEND PROPERTY BUILD_RPATH "$ORIGIN")
target_link_options(antdt_shared PRIVATE -Wl,--disable-new-dtags)

# Packed as Debian wants them, and with the same bytes each time.
set(packed_pages)
foreach(section 1 5 8)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.${section})
  foreach(page IN LISTS pages)
    cmake_path(GET page FILENAME name)
    set(packed ${CMAKE_BINARY_DIR}/man/${name}.gz)
    add_custom_command(OUTPUT ${packed} DEPENDS ${page} VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
      COMMAND sh -c "gzip -9nc \"$1\" > \"$2\"" pack ${page} ${packed})
    list(APPEND packed_pages ${packed})
    install(FILES ${packed} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT antdt)
  endforeach()
endforeach()
add_custom_target(antdt_man ALL DEPENDS ${packed_pages})
install(FILES ${CMAKE_SOURCE_DIR}/packaging/antdt.sysusers
  DESTINATION lib/sysusers.d RENAME antdt.conf COMPONENT antdt)
# Completion is made from --help of the programs. A sanitizer's build is not installed.
if(Python3_FOUND AND NOT ANTDT_SANITIZE)
  set(completion ${CMAKE_BINARY_DIR}/completion)
  add_custom_command(OUTPUT ${completion}/antdt.bash ${completion}/_antdt
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/packaging/completion/generate.py
      ${CMAKE_BINARY_DIR}/bin ${completion}
    DEPENDS antdt antdtd ${CMAKE_SOURCE_DIR}/packaging/completion/generate.py VERBATIM)
  add_custom_target(antdt_completion ALL DEPENDS ${completion}/antdt.bash ${completion}/_antdt)
  set(bash_completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completion}/antdt.bash DESTINATION ${bash_completions} RENAME antdt COMPONENT antdt)
  install(FILES ${completion}/antdt.bash DESTINATION ${bash_completions} RENAME antdtd COMPONENT antdt)
  install(FILES ${completion}/_antdt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT antdt)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/packaging/prometheus/antdt-alerts.yml
  DESTINATION share/antdt/prometheus COMPONENT antdt)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/grafana/antdt-dashboard.json
  DESTINATION share/antdt/grafana COMPONENT antdt)
# Settings are in /etc where the prefix is /usr, as in a package, and below the prefix elsewhere. The prefix
# is known when it is installed.
install(CODE "
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  set(etc \"\${prefix}/etc\")
  if(prefix STREQUAL /usr)
    set(etc /etc)
  endif()
  set(bin \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(${CMAKE_SOURCE_DIR}/packaging/antdtd.service.in ${CMAKE_BINARY_DIR}/antdtd.service @ONLY)
  " COMPONENT antdt)
install(FILES ${CMAKE_BINARY_DIR}/antdtd.service DESTINATION lib/systemd/system COMPONENT antdt)
# What an administrator has changed is kept.
function(antdt_install_setting file directory name)
  install(CODE "
    if(NOT EXISTS \"\$ENV{DESTDIR}\${etc}/${directory}/${name}\")
      file(INSTALL FILES \"${CMAKE_SOURCE_DIR}/packaging/${file}\" DESTINATION \"\${etc}/${directory}\"
        RENAME ${name})
    endif()" COMPONENT antdt)
endfunction()
antdt_install_setting(debian/antdtd.default default antdtd)
antdt_install_setting(needrestart/antdt.conf needrestart/conf.d antdt.conf)
install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr)
    file(INSTALL FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR})
  endif()" COMPONENT antdt)

# The library of programs that are workers, and what they are built with.
install(TARGETS antdt_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT lib NAMELINK_COMPONENT dev)
# The tracer of unmodified scripts, which needs the library (docs/torchrun).
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/antdt/trace/ DESTINATION share/antdt/trace
  COMPONENT lib FILES_MATCHING PATTERN "*.py")
install(FILES ${CMAKE_SOURCE_DIR}/include/antdt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_SOURCE_DIR}/packaging/antdtConfig.cmake.in
  ${CMAKE_BINARY_DIR}/antdtConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/antdt
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/antdtConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/antdtConfig.cmake ${CMAKE_BINARY_DIR}/antdtConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/antdt COMPONENT dev)
if(TARGET antdt_kit_shared)
  install(TARGETS antdt_kit_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT kit NAMELINK_COMPONENT kitdev)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/antdt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT kitdev FILES_MATCHING PATTERN "*.h")
  get_filename_component(ANTDT_TORCH_DIRECTORY ${ANTDT_TORCH_LIB} DIRECTORY)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/packaging/antdtKit.cmake.in
    ${CMAKE_BINARY_DIR}/antdtKit.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/antdt
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
  install(FILES ${CMAKE_BINARY_DIR}/antdtKit.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/antdt COMPONENT kitdev)
endif()
# Written when it is installed, since it names the prefix.
install(CODE "
  set(version ${PROJECT_VERSION})
  set(libdir ${CMAKE_INSTALL_LIBDIR})
  set(includedir ${CMAKE_INSTALL_INCLUDEDIR})
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  configure_file(${CMAKE_SOURCE_DIR}/packaging/antdt.pc.in ${CMAKE_BINARY_DIR}/antdt.pc @ONLY)
  " COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/antdt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# The Python package on the library of the package libantdt1; the programs are those of antdt. In a wheel
# (scripts/wheel) it brings both.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/antdt DESTINATION lib/python3/dist-packages
  COMPONENT python FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "_programs.py" EXCLUDE)

# Whoever gives packages to others names an address at which they are reached.
set(ANTDT_MAINTAINER "The AntDT authors <maintainers@antdt.invalid>" CACHE STRING "Maintainer of the Debian packages")

# What Debian wants of each package in /usr/share/doc.
function(antdt_debian_doc component package)
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package})
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/debian/copyright DESTINATION ${doc} COMPONENT ${component})
  if(Python3_FOUND)
    set(changelog ${CMAKE_BINARY_DIR}/changelog.gz)
    install(CODE "
      execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/packaging/debian/changelog.py
        ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${PROJECT_VERSION} \"${ANTDT_MAINTAINER}\" ${changelog} COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL FILES ${changelog} DESTINATION \${CMAKE_INSTALL_PREFIX}/${doc})"
      COMPONENT ${component})
  endif()
endfunction()
antdt_debian_doc(antdt antdt)
antdt_debian_doc(lib libantdt1)
antdt_debian_doc(dev libantdt-dev)
antdt_debian_doc(python python3-antdt)
if(TARGET antdt-trainer)
  antdt_debian_doc(trainer antdt-trainer)
  antdt_debian_doc(kit libantdt-kit1)
  antdt_debian_doc(kitdev libantdt-kit-dev)
endif()

# Builds what is installed and nothing else.
add_custom_target(antdt_installed)
foreach(target antdt antdtd antdt-instrument antdt-jobd antdt-server antdt-shim antdt-trainer antdt-bench-allreduce
    antdt_shared antdt_kit_shared antdt_completion antdt_man)
  if(TARGET ${target})
    add_dependencies(antdt_installed ${target})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME antdt)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${ANTDT_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL antdt lib dev python)
if(TARGET antdt-trainer)
  list(APPEND CPACK_COMPONENTS_ALL trainer kit kitdev)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ANTDT_PACKAGE_NAME antdt)
set(CPACK_DEBIAN_ANTDT_DESCRIPTION
  "distributed training that accounts for every record\n\
Launcher, agent and job daemon: they start the workers of a training job on\n\
many machines, hand out its data exactly once, and move work away from\n\
stragglers.")
set(scripts ${CMAKE_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_ANTDT_PACKAGE_CONTROL_EXTRA
  ${scripts}/antdt/postinst ${scripts}/antdt/prerm ${scripts}/antdt/postrm ${scripts}/antdt/conffiles)
# It holds the tracer, without which scripts of torchrun run unmeasured.
set(CPACK_DEBIAN_ANTDT_PACKAGE_DEPENDS "libantdt1 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_ANTDT_PACKAGE_RECOMMENDS libcurl4)
set(CPACK_DEBIAN_TRAINER_PACKAGE_NAME antdt-trainer)
set(CPACK_DEBIAN_TRAINER_PACKAGE_DEPENDS "antdt (= ${PROJECT_VERSION}), libopenblas0-pthread")
set(CPACK_DEBIAN_TRAINER_DESCRIPTION
  "trainer of AntDT for click-through rate and image models\n\
Built on LibTorch, for processors; other programs can be workers too.")
set(CPACK_DEBIAN_LIB_PACKAGE_NAME libantdt1)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_DESCRIPTION
  "makes any program a worker of AntDT\n\
What programs that are linked with libantdt need to run.")
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${scripts}/lib/triggers)
set(CPACK_DEBIAN_KIT_PACKAGE_CONTROL_EXTRA ${scripts}/lib/triggers)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libantdt-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libantdt1 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION
  "makes any program a worker of AntDT (development files)\n\
The header of the C interface, and files for pkg-config and CMake.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-antdt)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "libantdt1 (= ${PROJECT_VERSION}), python3 (>= 3.8)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "antdt (= ${PROJECT_VERSION}), python3-torch")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${scripts}/python/postinst ${scripts}/python/prerm)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION
  "makes Python programs workers of AntDT\n\
For PyTorch and without; a training loop changes in about eight lines.")
set(CPACK_DEBIAN_KIT_PACKAGE_NAME libantdt-kit1)
set(CPACK_DEBIAN_KIT_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_KIT_PACKAGE_DEPENDS libopenblas0-pthread)
set(CPACK_DEBIAN_KIT_DESCRIPTION
  "models of one's own as workers of AntDT\n\
What programs that are made with the C++ kit need to run.")
set(CPACK_DEBIAN_KITDEV_PACKAGE_NAME libantdt-kit-dev)
set(CPACK_DEBIAN_KITDEV_PACKAGE_DEPENDS
  "libantdt-kit1 (= ${PROJECT_VERSION}), libantdt-dev (= ${PROJECT_VERSION}), libtorch-dev")
set(CPACK_DEBIAN_KITDEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_KITDEV_DESCRIPTION
  "models of one's own as workers of AntDT (development files)\n\
The headers of the C++ kit, and its file for CMake.")
include(CPack)
