# Everything from Debian; README.md names each with its reason.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
# Its package names the headers of what libzmq itself was built with, in another order each time
# it is configured again, and then everything would be compiled again. Its users need none.
set_target_properties(PkgConfig::ZMQ PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(CURL REQUIRED libcurl)  # headers only: it is loaded when a job needs it
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
# Boost.Process v2 is header-only in 1.81.
find_package(Boost 1.81 REQUIRED)

# The codec of messages: headers alone. Debian's package of them cannot stand beside Boost
# 1.81, so scripts/install-deps unpacks it into .deps/.
find_path(ANTDT_MSGPACK_INCLUDE msgpack.hpp
  HINTS ${CMAKE_SOURCE_DIR}/.deps/usr/include REQUIRED)
add_library(antdt_msgpack INTERFACE)
target_include_directories(antdt_msgpack SYSTEM INTERFACE ${ANTDT_MSGPACK_INCLUDE})
target_compile_definitions(antdt_msgpack INTERFACE MSGPACK_NO_BOOST)

if(ANTDT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(ANTDT_TRAINER)
  # Debian's TorchConfig asks for build tools that programs using LibTorch do
  # not need, so the libraries are named here.
  find_path(ANTDT_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h
    DOC "LibTorch headers (apt install libtorch-dev), or set -DANTDT_TRAINER=OFF" REQUIRED)
  find_library(ANTDT_TORCH_LIB torch REQUIRED)
  find_library(ANTDT_TORCH_CPU_LIB torch_cpu REQUIRED)
  find_library(ANTDT_C10_LIB c10 REQUIRED)
  add_library(antdt_torch INTERFACE)
  target_include_directories(antdt_torch SYSTEM INTERFACE
    ${ANTDT_TORCH_INCLUDE} ${ANTDT_TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(antdt_torch INTERFACE
    ${ANTDT_TORCH_LIB} ${ANTDT_TORCH_CPU_LIB} ${ANTDT_C10_LIB})
endif()
