// Whether a test may fork while it has threads.
#pragma once

namespace antdt {

// Not under the thread sanitizer of GCC 12: it holds its own allocator's locks across no
// fork (later releases do), and a child that was born while another thread had one waits
// for it for ever. The address sanitizer's build runs these tests.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kMayFork = false;
#else
inline constexpr bool kMayFork = true;
#endif

}  // namespace antdt
