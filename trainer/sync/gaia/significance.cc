#include "trainer/sync/gaia/significance.h"

// The loader chooses by the processor. The loop has no sum of a product, so its result does not
// depend on which vectors are used.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ANTDT_GAIA_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ANTDT_GAIA_VECTORISED
#endif

namespace antdt::sync::gaia {

ANTDT_GAIA_VECTORISED std::uint32_t count_significant(const float* values, const float* known,
                                                      std::size_t count, float threshold) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    found += is_significant(values[i], values[i] - known[i], threshold) ? 1U : 0U;
  }
  return found;
}

}  // namespace antdt::sync::gaia
