#include "trainer/collective/collective.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace antdt::trainer {

Status Collective::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t bytes = mine.size();
  if (all.size() != bytes * size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} bytes of each of {} members into {} bytes",
                bytes, size(), all.size());
  }
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(rank() * bytes));
  return allgather_parts(std::vector<std::size_t>(size(), bytes), all);
}

namespace {

template <class T>
Status mean(Collective& collective, std::span<T> values) {
  ANTDT_RETURN_IF_ERROR(collective.allreduce_sum(values));
  const T members = static_cast<T>(collective.size());
  for (T& value : values) value /= members;
  return {};
}

}  // namespace

Status Collective::allreduce_mean(std::span<float> values) { return mean(*this, values); }
Status Collective::allreduce_mean(std::span<double> values) { return mean(*this, values); }

Status Collective::alltoall_parts(std::span<const std::size_t>, std::span<const std::byte>,
                                  std::span<const std::size_t>, std::span<std::byte>) {
  return fail(ErrorKind::kUsage, "this collective has no all-to-all exchange");
}

Result<std::vector<std::size_t>> Collective::alltoall_sizes(
    std::span<const std::size_t> sent_sizes) {
  if (sent_sizes.size() != size()) {
    return fail(ErrorKind::kInternal, "{} sizes of parts came for {} members", sent_sizes.size(),
                size());
  }
  const std::vector<std::size_t> bytes(size(), sizeof(std::size_t));
  std::vector<std::size_t> received(size());
  ANTDT_RETURN_IF_ERROR(alltoall_parts(bytes, std::as_bytes(sent_sizes), bytes,
                                       std::as_writable_bytes(std::span(received))));
  return received;
}

Status is_group(std::uint32_t rank, std::uint32_t size, std::span<const std::uint32_t> ranks) {
  const bool ascends = std::ranges::adjacent_find(ranks, std::greater_equal()) == ranks.end();
  if (ascends && std::ranges::find(ranks, rank) != ranks.end() && ranks.back() < size) return {};
  return fail(
      ErrorKind::kInternal,
      "[{}] is no group of rank {}: it must be ranks of {} members, ascending, with that one",
      fmt::join(ranks, ", "), rank, size);
}

Result<std::unique_ptr<Collective>> Collective::group(std::span<const std::uint32_t>) {
  return fail(ErrorKind::kUsage, "this collective has no groups");
}

}  // namespace antdt::trainer
