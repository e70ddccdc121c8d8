#ifndef ANTDT_TESTS_SANITIZED_H_
#define ANTDT_TESTS_SANITIZED_H_

// A sanitizer makes a simulation ten to thirty times as slow. A part of a long simulation reaches
// the same code; the build without sanitizers tests its decisions.

#include "tests/sanitizer.h"

namespace antdt {

// `all`, or `some` where a sanitizer watches.
template <typename T>
constexpr T all_or_some(T all, T some) {
  return kSanitized ? some : all;
}

}  // namespace antdt

#endif  // ANTDT_TESTS_SANITIZED_H_
