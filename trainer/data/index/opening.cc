#include "trainer/data/index/opening.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace antdt::data {

std::uint64_t Opening::hash(const char* what, const MappedFile& file, std::string_view bytes) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (std::size_t done = 0; done < bytes.size();) {
    const std::string_view next = bytes.substr(done, kTellEvery);
    XXH3_64bits_update(&state, next.data(), next.size());
    done += next.size();
    tell(what, file.path(), done, bytes.size());
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace antdt::data
