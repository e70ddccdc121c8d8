// Whether a test may fork while it has threads.
#pragma once

#include "tests/sanitizer.h"

namespace antdt {

// Not under the sanitizers of clang 16 and GCC 12: they hold their own allocators' locks
// across no fork (later releases do), and a child that was born while another thread had one
// waits for it for ever. Their builds run the tests whose process has one thread.
inline constexpr bool kMayFork = !kSanitized;

}  // namespace antdt
