# Everything from Debian; README.md names each with its reason.
find_package(Threads REQUIRED)
# The target PkgConfig::NAME. Where there is no pkg-config the library and its header are looked for,
# which is enough for what bench/gpu/pack takes along.
find_package(PkgConfig)
function(antdt_package name module library header)
  if(PKG_CONFIG_FOUND AND NOT ANTDT_PACK)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    return()
  endif()
  find_path(${name}_HEADERS ${header} REQUIRED)
  find_library(${name}_FOUND ${library} REQUIRED)
  add_library(PkgConfig::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(PkgConfig::${name} PROPERTIES IMPORTED_LOCATION ${${name}_FOUND}
    INTERFACE_INCLUDE_DIRECTORIES ${${name}_HEADERS})
endfunction()
# A folder of bench/gpu/pack, for machines without the packages. Its headers go before those that a
# machine has, which may be of other versions.
set(ANTDT_PACK "" CACHE PATH "An unpacked file of bench/gpu/pack; empty: the packages are installed")
if(ANTDT_PACK)
  list(PREPEND CMAKE_PREFIX_PATH ${ANTDT_PACK}/usr)
  set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
  include_directories(BEFORE SYSTEM ${ANTDT_PACK}/usr/include ${ANTDT_PACK}/usr/include/x86_64-linux-gnu)
endif()
antdt_package(ZMQ libzmq zmq zmq.h)
# Its package names the headers of what libzmq itself was built with, in another order each time
# it is configured again, and then everything would be compiled again. Its users need none.
set_target_properties(PkgConfig::ZMQ PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_COMPILE_OPTIONS "")
antdt_package(SODIUM libsodium sodium sodium.h)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_path(ANTDT_CURL_HEADERS curl/curl.h REQUIRED)  # headers only: it is loaded when a job needs it
antdt_package(SQLITE sqlite3 sqlite3 sqlite3.h)
antdt_package(XXHASH libxxhash xxhash xxhash.h)
antdt_package(ZSTD libzstd zstd zstd.h)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
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
  include(LibTorch)
endif()
