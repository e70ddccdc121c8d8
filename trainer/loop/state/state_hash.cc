#include "trainer/loop/state/state_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <span>
#include <vector>

namespace antdt::trainer {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 20;  // some tens of milliseconds

}  // namespace

std::uint64_t state_hash(Engine& engine, Step step, const Hashed& hashed) {
  const auto parts = engine.state_parts();
  std::uint64_t of_all = 0;
  for (const auto part : parts) of_all += part.size();
  std::uint64_t hash = step.value, bytes = 0;
  for (std::span<const std::byte> rest : parts) {
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), kPiece));
      hash = XXH3_64bits_withSeed(piece.data(), piece.size(), hash);
      bytes += piece.size();
      rest = rest.subspan(piece.size());
      if (hashed) hashed(bytes, of_all);
    }
  }
  return hash;
}

Result<std::uint64_t> device_state_hash(DeviceState& state, Step step) {
  ANTDT_TRY(const std::vector<std::uint64_t> digests, state.digests());
  std::uint64_t hash =
      XXH3_64bits_withSeed(digests.data(), digests.size() * sizeof(digests[0]), step.value);
  for (const auto part : state.rest()) hash = XXH3_64bits_withSeed(part.data(), part.size(), hash);
  return hash;
}

}  // namespace antdt::trainer
