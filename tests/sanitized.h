#ifndef ANTDT_TESTS_SANITIZED_H_
#define ANTDT_TESTS_SANITIZED_H_

// A sanitizer makes a simulation ten to thirty times as slow. What a long one shows of
// decisions it shows in the build without; a part of it reaches the same code.

#include "tests/sanitizer.h"

namespace antdt::testing {

// `all`, or `some` where a sanitizer watches.
template <typename T>
constexpr T all_or_some(T all, T some) {
  return kSanitized ? some : all;
}

}  // namespace antdt::testing

#endif  // ANTDT_TESTS_SANITIZED_H_
