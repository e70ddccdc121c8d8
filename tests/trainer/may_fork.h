// Whether a test may fork while it has threads.
#pragma once

namespace antdt {

// Not under the sanitizers of GCC 12: they hold their own allocators' locks across no fork
// (later releases do), and a child that was born while another thread had one waits for it
// for ever. Their builds run the tests whose process has one thread.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMayFork = false;
#else
inline constexpr bool kMayFork = true;
#endif

}  // namespace antdt
