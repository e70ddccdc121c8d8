#include "trainer/collective/shm/stores.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace antdt::trainer::shm {

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
#if defined(__SSE2__)
  for (; done + 64 <= bytes; done += 64) {
    const auto* const in = reinterpret_cast<const __m128i*>(from + done);
    auto* const out = reinterpret_cast<__m128i*>(to + done);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
#endif
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace antdt::trainer::shm
