# The target antdt_torch: LibTorch's headers and libraries. Debian's, or another: ANTDT_TORCH names
# an unpacked LibTorch, the folder of a wheel's package `torch`, or a virtual environment that has one;
# `python` asks python3. Where it has CUDA the programs have it, too (docs/programs/cuda.md).
set(ANTDT_TORCH "" CACHE STRING "LibTorch 2: its folder, that of a virtual environment, or python; empty: Debian's")

function(antdt_find_torch_package where result)
  if(where STREQUAL python)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c
      "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${Python3_EXECUTABLE} has no torch: install it, or set ANTDT_TORCH to its folder")
    endif()
    set(where ${found})
  endif()
  file(GLOB candidates ${where} ${where}/torch ${where}/lib/python3*/site-packages/torch
    ${where}/lib/python3*/dist-packages/torch)
  foreach(candidate IN LISTS candidates)
    if(EXISTS ${candidate}/include/torch/csrc/api/include/torch/torch.h)
      set(${result} ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "no LibTorch in ${where} (ANTDT_TORCH): scripts/install-deps --cuda installs one, "
    "and -DANTDT_TORCH= takes Debian's")
endfunction()

add_library(antdt_torch INTERFACE)
if(ANTDT_TORCH)
  antdt_find_torch_package(${ANTDT_TORCH} package)
  # Its headers come with those of another {fmt} than the libraries here are made with, so the rest of
  # them is seen through a folder of links.
  set(torch_headers_folder ${CMAKE_BINARY_DIR}/torch-headers)
  file(REMOVE_RECURSE ${torch_headers_folder})
  file(MAKE_DIRECTORY ${torch_headers_folder})
  file(GLOB parts ${package}/include/*)
  foreach(part IN LISTS parts)
    cmake_path(GET part FILENAME name)
    if(NOT name STREQUAL fmt)
      file(CREATE_LINK ${part} ${torch_headers_folder}/${name} SYMBOLIC)
    endif()
  endforeach()
  target_include_directories(antdt_torch SYSTEM INTERFACE ${torch_headers_folder} ${torch_headers_folder}/torch/csrc/api/include)
  set(ANTDT_TORCH_LIB ${package}/lib/libtorch.so)
  target_link_libraries(antdt_torch INTERFACE
    ${package}/lib/libtorch.so ${package}/lib/libtorch_cpu.so ${package}/lib/libc10.so)
  if(EXISTS ${package}/lib/libtorch_cuda.so)
    # Nothing here calls it by name: it registers itself when it is loaded. What it needs of CUDA it
    # finds by its own run path.
    target_link_libraries(antdt_torch INTERFACE
      -Wl,--push-state,--no-as-needed ${package}/lib/libtorch_cuda.so ${package}/lib/libc10_cuda.so -Wl,--pop-state
      -Wl,--allow-shlib-undefined)
  endif()
  file(GLOB_RECURSE headers_of_version ${package}/include/torch/*/version.h)
  set(version)
  foreach(part MAJOR MINOR PATCH)
    foreach(header IN LISTS headers_of_version)
      file(STRINGS ${header} line REGEX "define TORCH_VERSION_${part} ")
      if(line MATCHES "${part} ([0-9]+)")
        list(APPEND version ${CMAKE_MATCH_1})
        break()
      endif()
    endforeach()
  endforeach()
  list(JOIN version . version)
  message(STATUS "LibTorch: ${version} in ${package}")
else()
  # Debian's TorchConfig asks for build tools that programs using LibTorch do
  # not need, so the libraries are named here.
  find_path(ANTDT_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h
    DOC "LibTorch headers (apt install libtorch-dev), or set -DANTDT_TRAINER=OFF" REQUIRED)
  find_library(ANTDT_TORCH_LIB torch REQUIRED)
  find_library(ANTDT_TORCH_CPU_LIB torch_cpu REQUIRED)
  find_library(ANTDT_C10_LIB c10 REQUIRED)
  target_include_directories(antdt_torch SYSTEM INTERFACE
    ${ANTDT_TORCH_INCLUDE} ${ANTDT_TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(antdt_torch INTERFACE
    ${ANTDT_TORCH_LIB} ${ANTDT_TORCH_CPU_LIB} ${ANTDT_C10_LIB})
endif()
