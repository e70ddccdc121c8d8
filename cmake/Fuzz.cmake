# -DANTDT_FUZZ=ON: the decoders under libFuzzer, with clang alone; scripts/fuzz
# configures, builds and runs them. All code is instrumented: such a build directory
# is for nothing else.
option(ANTDT_FUZZ "Build the fuzzers of tests/fuzz (needs clang)" OFF)
if(ANTDT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "ANTDT_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++-16")
  endif()
  add_compile_options(-O1 -g1 -fno-omit-frame-pointer
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()
