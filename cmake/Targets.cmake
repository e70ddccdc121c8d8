# antdt_library(NAME [PIC] SOURCES... [LIBS ...] [HEADERS set]): one folder's library, warnings on.
# PIC: libantdt.so is made of it, so its code is position-independent and its names stay inside.
# antdt_program(NAME SOURCES... [LIBS ...]): a program in build/bin.
# antdt_test(NAME SOURCES... [LIBS ...] [HEADERS set] [SHARDS n] [ONE_THREAD]): a GoogleTest program;
# the target antdt_unit_tests builds all of them and what they start. It is one CTest test, since under
# a sanitizer a program's start costs more than most of its tests; one that takes long is n of them.
# ONE_THREAD: it starts no second thread but libzmq's own, and ends where it would (tests/one_thread.cc).
# The thread sanitizer, which can find nothing in it, does without: it would take half the time.
# HEADERS: the precompiled set, where it is not the usual one.
add_library(antdt_options INTERFACE)
target_compile_options(antdt_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough)
# GCC 12 warns of overlapping copies inside std::string where there are none
# (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(antdt_options INTERFACE -Wno-restrict)
endif()
# GCC takes a source that a unity build includes for a header, whose classes should
# not be made of what is in an anonymous namespace; tests/arrows_test.py sees to headers.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(antdt_options INTERFACE -Wno-subobject-linkage)
endif()
if(ANTDT_WERROR)
  target_compile_options(antdt_options INTERFACE -Werror)
endif()
# GCC looks for what it may free from 128 MiB on, at each doubling, and finds little: without that a
# file of a unity build takes an eighth less of a processor's time and a quarter more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
target_include_directories(antdt_options INTERFACE ${CMAKE_SOURCE_DIR})
# Objects do not say in which folder the sources lay: two checkouts build the same bytes, and ccache
# serves one with what it compiled for the other.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_link_libraries(antdt_options INTERFACE fmt::fmt)
if(ANTDT_SANITIZE)
  add_compile_options(-fsanitize=${ANTDT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ANTDT_SANITIZE})
endif()
# For folders whose programs wait for people, processes and other machines: it takes three quarters of
# the time to build, and what they call is in the other folders.
set(ANTDT_COLD $<$<CONFIG:Release>:-O1>)
# In a sanitizer's build a library is a list of its objects and does not contain copies of them: the
# copies would be as large as all objects. Such a build is not installed.
if(ANTDT_SANITIZE OR ANTDT_FUZZ)
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qc --thin <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> q --thin <TARGET> <LINK_FLAGS> <OBJECTS>")
endif()
find_program(ANTDT_MOLD mold)
if(ANTDT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Headers that are parsed once for all targets that use their set: cmake/SET.h. A file still includes
# what it uses. GCC warns of what it inlines from system headers that come precompiled, which it does
# not otherwise; a call that it warns of wrongly is written in another way.
set(ANTDT_PIC POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
option(ANTDT_PCH "Parse the headers that most files share once" ON)
function(antdt_precompile set)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${set}.cc CONTENT "")
  add_library(antdt_${set} OBJECT ${CMAKE_BINARY_DIR}/${set}.cc)
  target_link_libraries(antdt_${set} PRIVATE antdt_options nlohmann_json::nlohmann_json ${ARGN})
  target_precompile_headers(antdt_${set} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${set}.h)
endfunction()
function(antdt_use_precompiled target set)
  if(TARGET antdt_${set})
    target_precompile_headers(${target} REUSE_FROM antdt_${set})
    # For ccache: without it a cached object may not match the precompiled header.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endif()
endfunction()
if(ANTDT_PCH AND NOT ANTDT_FUZZ)
  antdt_precompile(headers)
  antdt_precompile(pic_headers)
  set_target_properties(antdt_pic_headers PROPERTIES ${ANTDT_PIC})
  antdt_precompile(command_headers)
  if(ANTDT_TESTS)
    antdt_precompile(test_headers GTest::gmock)
    target_compile_options(antdt_test_headers PRIVATE -O0)
  endif()
endif()
if(ANTDT_PCH AND ANTDT_TRAINER)
  antdt_precompile(torch_headers antdt_torch)
  set_target_properties(antdt_torch_headers PROPERTIES ${ANTDT_PIC})
endif()

function(antdt_library name)
  cmake_parse_arguments(arg "PIC" "HEADERS" "LIBS" HEADERS headers ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC antdt_options ${arg_LIBS})
  if(arg_PIC OR arg_HEADERS STREQUAL torch_headers)  # what is precompiled is the same everywhere
    set_target_properties(${name} PROPERTIES ${ANTDT_PIC})
    if(arg_HEADERS STREQUAL "headers")
      set(arg_HEADERS pic_headers)
    endif()
  endif()
  antdt_use_precompiled(${name} ${arg_HEADERS})
endfunction()

function(antdt_program name)
  cmake_parse_arguments(arg "" "HEADERS" "LIBS" HEADERS command_headers ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE antdt_options ${arg_LIBS})
  antdt_use_precompiled(${name} ${arg_HEADERS})
  if(arg_HEADERS STREQUAL torch_headers AND TARGET antdt_torch_headers)  # what is precompiled is the same everywhere
    target_compile_options(${name} PRIVATE -fPIC -fvisibility=hidden -fvisibility-inlines-hidden $<$<CONFIG:Release>:-O2>)
  endif()
endfunction()

add_custom_target(antdt_unit_tests)
function(antdt_test name)
  cmake_parse_arguments(arg "ONE_THREAD" "HEADERS;SHARDS" "LIBS" HEADERS test_headers SHARDS 1 ${ARGN})
  # One file of a unity build costs less without optimisation than with LibTorch's precompiled header.
  if(CMAKE_UNITY_BUILD)
    set(arg_HEADERS test_headers)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE antdt_options ${arg_LIBS} GTest::gmock GTest::gtest_main)
  antdt_use_precompiled(${name} ${arg_HEADERS})
  if(arg_HEADERS STREQUAL torch_headers)
    set_target_properties(${name} PROPERTIES ${ANTDT_PIC})
  endif()
  if(arg_ONE_THREAD AND ANTDT_SANITIZE STREQUAL thread)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  if(arg_ONE_THREAD AND NOT ANTDT_SANITIZE)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/one_thread.cc)
  endif()
  # Tests are compiled more often than their own code runs. LibTorch's precompiled
  # header is for one level of optimisation.
  if(NOT (arg_HEADERS STREQUAL torch_headers AND TARGET antdt_torch_headers))
    target_compile_options(${name} PRIVATE -O0)
  endif()
  add_dependencies(antdt_unit_tests ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(arg_SHARDS EQUAL 1)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    return()
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}_${shard} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}" COST 50)
  endforeach()
endfunction()
