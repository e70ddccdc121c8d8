# -DANTDT_FUZZ=ON: the decoders under libFuzzer, with clang and the address sanitizer alone; the preset
# asan has them, and scripts/fuzz runs them. They share the objects of the unit tests: a library that
# antdt_fuzzed() names tells libFuzzer which of its branches an input took.
option(ANTDT_FUZZ "Build the fuzzers of tests/fuzz (needs clang and the address sanitizer)" OFF)
if(ANTDT_FUZZ AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND ANTDT_SANITIZE MATCHES address))
  message(FATAL_ERROR "ANTDT_FUZZ needs clang and the address sanitizer: cmake --preset asan")
endif()
function(antdt_fuzzed)
  foreach(library IN LISTS ARGN)
    target_compile_options(${library} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,pc-table,indirect-calls,trace-cmp)
  endforeach()
endfunction()
