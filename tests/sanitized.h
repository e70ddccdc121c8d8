#ifndef ANTDT_TESTS_SANITIZED_H_
#define ANTDT_TESTS_SANITIZED_H_

// A sanitizer makes a simulation ten to thirty times as slow. What a long one shows of
// decisions it shows in the build without; a part of it reaches the same code.

namespace antdt::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// `all`, or `some` where a sanitizer watches.
template <typename T>
constexpr T all_or_some(T all, T some) {
  return kSanitized ? some : all;
}

}  // namespace antdt::testing

#endif  // ANTDT_TESTS_SANITIZED_H_
