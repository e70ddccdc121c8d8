# antdt_library(NAME SOURCES... [LIBS ...]): one folder's library, warnings on.
# antdt_program(NAME SOURCES... [LIBS ...]): a program in build/bin.
# antdt_test(NAME SOURCES... [LIBS ...]): a GoogleTest program, each test a CTest test.
add_library(antdt_options INTERFACE)
target_compile_options(antdt_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough)
# GCC 12 warns of overlapping copies inside std::string where there are none
# (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(antdt_options INTERFACE -Wno-restrict)
endif()
if(ANTDT_WERROR)
  target_compile_options(antdt_options INTERFACE -Werror)
endif()
target_include_directories(antdt_options INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(antdt_options INTERFACE fmt::fmt)
if(ANTDT_SANITIZE)
  add_compile_options(-fsanitize=${ANTDT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ANTDT_SANITIZE})
endif()
find_program(ANTDT_MOLD mold)
if(ANTDT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

function(antdt_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC antdt_options ${arg_LIBS})
endfunction()

function(antdt_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE antdt_options ${arg_LIBS})
endfunction()

function(antdt_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE antdt_options ${arg_LIBS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST)
endfunction()
