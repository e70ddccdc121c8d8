// Loops over floats that use the widest vectors the processor has.
//
// A function with ANTDT_VECTORISED is compiled for AVX-512, for AVX2 and for every processor, and
// the loader chooses. Files that use it are compiled with -ffp-contract=off: a product and a sum
// that one processor joins and another does not would give members with unlike processors unlike
// parameters.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ANTDT_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ANTDT_VECTORISED
#endif
