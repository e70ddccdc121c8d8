#include "trainer/collective/tcp/tcp_collective.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "trainer/collective/add_into.h"
#include "trainer/collective/tcp/ring_plan.h"

namespace antdt::trainer {
namespace {

// Small enough that sending and adding overlap and that a segment stays in a core's cache; large
// enough that the cost of a message (some 10 us) is negligible.
constexpr std::size_t kSegmentBytes = 256 * 1024;

}  // namespace

TcpCollective::TcpCollective(std::shared_ptr<TcpLinks> links, std::vector<std::uint32_t> members)
    : links_(std::move(links)),
      members_(std::move(members)),
      rank_(static_cast<std::uint32_t>(std::ranges::find(members_, links_->rank()) -
                                       members_.begin())),
      doubling_(doubling_plan(rank_, size())),
      gathering_(gather_rounds(rank_, size())) {
  ANTDT_CHECK(rank_ < size(), "rank {} is not among the members", links_->rank());
}

std::vector<std::uint32_t> TcpCollective::peers_among(std::uint32_t rank,
                                                      const std::vector<std::uint32_t>& members) {
  const auto place = static_cast<std::uint32_t>(std::ranges::find(members, rank) - members.begin());
  std::vector<std::uint32_t> peers;
  for (const std::uint32_t peer : peers_of(place, static_cast<std::uint32_t>(members.size()))) {
    peers.push_back(members[peer]);
  }
  return peers;
}

std::uint32_t TcpCollective::neighbour(Side side) const {
  return members_[(rank_ + (side == Side::kRight ? 1 : size() - 1)) % size()];
}

Status TcpCollective::has_neighbour() const {
  if (size() > 1) return {};
  return fail(ErrorKind::kInternal, "a group of one member has no neighbour to pass bytes to");
}

template <class T>
Status TcpCollective::sum(std::span<T> values) {
  if (size() == 1) return links_->alive();
  if (values.empty()) return {};
  return doubling_is_quicker(size(), values.size_bytes()) ? sum_by_doubling(values)
                                                          : sum_around_the_ring(values);
}

template <class T>
Status TcpCollective::receive_and_add(std::uint32_t from, std::span<T> values) {
  const std::span<T> received = staging<T>(values.size());
  ANTDT_RETURN_IF_ERROR(links_->receive(members_[from], std::as_writable_bytes(received)));
  // Some of these values may not be on their way yet.
  ANTDT_RETURN_IF_ERROR(links_->flush());
  add_into(values.data(), received.data(), values.size());
  return {};
}

template <class T>
Status TcpCollective::sum_by_doubling(std::span<T> values) {
  const auto bytes = std::as_bytes(values);
  if (doubling_.folds) {
    ANTDT_RETURN_IF_ERROR(links_->send(members_[*doubling_.folded], bytes));
    ANTDT_RETURN_IF_ERROR(links_->flush());
    return links_->receive(members_[*doubling_.folded], std::as_writable_bytes(values));
  }
  if (doubling_.folded) ANTDT_RETURN_IF_ERROR(receive_and_add(*doubling_.folded, values));
  for (const std::uint32_t partner : doubling_.partners) {
    ANTDT_RETURN_IF_ERROR(links_->send(members_[partner], bytes));
    ANTDT_RETURN_IF_ERROR(receive_and_add(partner, values));
  }
  if (doubling_.folded) ANTDT_RETURN_IF_ERROR(links_->send(members_[*doubling_.folded], bytes));
  return links_->flush();
}

// A block that is passed on is not overwritten before the right neighbour has it, because its
// replacement has travelled all around the ring.
template <class T>
Status TcpCollective::sum_around_the_ring(std::span<T> values) {
  const RingPlan plan(rank(), size(), values.size(), kSegmentBytes / sizeof(T));
  const std::span<T> received = staging<T>(kSegmentBytes / sizeof(T));
  const auto send = [&](std::size_t operation) -> Status {
    const RingPlan::Range range = plan.sent(operation);
    if (range.count == 0) return {};
    return links_->send(neighbour(Side::kRight),
                        std::as_bytes(values.subspan(range.first, range.count)));
  };
  for (std::size_t i = 0; i < plan.segments(); ++i) ANTDT_RETURN_IF_ERROR(send(i));
  for (std::size_t i = 0; i < plan.operations(); ++i) {
    const RingPlan::Range range = plan.received(i);
    const std::span<T> own = values.subspan(range.first, range.count);
    const std::span<T> into = plan.adds(i) ? received.first(range.count) : own;
    if (range.count > 0) {
      ANTDT_RETURN_IF_ERROR(links_->receive(neighbour(Side::kLeft), std::as_writable_bytes(into)));
    }
    if (plan.adds(i)) add_into(own.data(), into.data(), range.count);
    if (i + plan.segments() < plan.operations()) {
      ANTDT_RETURN_IF_ERROR(send(i + plan.segments()));
    }
  }
  return links_->flush();
}

Status TcpCollective::allreduce_sum(std::span<float> values) { return sum(values); }
Status TcpCollective::allreduce_sum(std::span<double> values) { return sum(values); }

template <class F>
Status TcpCollective::for_each_run(const Blocks& blocks, std::span<std::byte> all, F f) const {
  const std::uint32_t end = blocks.first + blocks.count;
  const auto run = [&](std::uint32_t from, std::uint32_t to) -> Status {
    const std::size_t bytes = begins_[to] - begins_[from];
    return bytes == 0 ? Status{} : f(all.subspan(begins_[from], bytes));
  };
  ANTDT_RETURN_IF_ERROR(run(blocks.first, std::min(end, size())));
  return end > size() ? run(0, end - size()) : Status{};
}

Status TcpCollective::allgather_parts(std::span<const std::size_t> sizes,
                                      std::span<std::byte> all) {
  const std::size_t total = std::reduce(sizes.begin(), sizes.end());
  if (sizes.size() != size() || total > all.size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} parts of {} bytes of {} members into {}",
                sizes.size(), total, size(), all.size());
  }
  if (size() == 1) return links_->alive();
  begins_.assign(1, 0);
  std::inclusive_scan(sizes.begin(), sizes.end(), std::back_inserter(begins_));
  for (const GatherRound& round : gathering_) {
    ANTDT_RETURN_IF_ERROR(for_each_run(round.sent, all, [&](std::span<std::byte> bytes) {
      return links_->send(members_[round.to], bytes);
    }));
    ANTDT_RETURN_IF_ERROR(for_each_run(round.received, all, [&](std::span<std::byte> bytes) {
      return links_->receive(members_[round.from], bytes);
    }));
  }
  return links_->flush();
}

namespace {

std::vector<std::uint32_t> without(std::uint32_t rank, std::vector<std::uint32_t> members) {
  std::erase(members, rank);
  return members;
}

// `place` is the place of a part among parts of these sizes.
template <class Byte>
std::span<Byte> part_of(std::span<Byte> all, std::span<const std::size_t> sizes,
                        std::size_t place) {
  const auto before = sizes.first(place);
  return all.subspan(std::reduce(before.begin(), before.end()), sizes[place]);
}

}  // namespace

// In round k each member sends to the one k places after it, so none gets the parts of several at
// once as long as all are equally fast.
Status TcpCollective::alltoall_parts(std::span<const std::size_t> sent_sizes,
                                     std::span<const std::byte> sent,
                                     std::span<const std::size_t> received_sizes,
                                     std::span<std::byte> received) {
  const bool fits = sent_sizes.size() == size() && received_sizes.size() == size() &&
                    std::reduce(sent_sizes.begin(), sent_sizes.end()) <= sent.size() &&
                    std::reduce(received_sizes.begin(), received_sizes.end()) <= received.size() &&
                    sent_sizes[rank_] == received_sizes[rank_];
  if (!fits) {
    return fail(ErrorKind::kInternal,
                "cannot exchange {} parts for {} parts among {} members: they do not fit the "
                "{} and {} bytes of memory, or the own part",
                sent_sizes.size(), received_sizes.size(), size(), sent.size(), received.size());
  }
  ANTDT_RETURN_IF_ERROR(links_->reach(without(links_->rank(), members_)));
  std::ranges::copy(part_of(sent, sent_sizes, rank_),
                    part_of(received, received_sizes, rank_).begin());
  for (std::uint32_t distance = 1; distance < size(); ++distance) {
    const std::uint32_t to = (rank_ + distance) % size();
    const std::uint32_t from = (rank_ + size() - distance) % size();
    if (sent_sizes[to] > 0) {
      ANTDT_RETURN_IF_ERROR(links_->send(members_[to], part_of(sent, sent_sizes, to)));
    }
    if (received_sizes[from] > 0) {
      ANTDT_RETURN_IF_ERROR(
          links_->receive(members_[from], part_of(received, received_sizes, from)));
    }
  }
  return links_->flush();
}

Result<std::unique_ptr<Collective>> TcpCollective::group(std::span<const std::uint32_t> ranks) {
  ANTDT_RETURN_IF_ERROR(is_group(rank_, size(), ranks));
  std::vector<std::uint32_t> members;
  for (const std::uint32_t rank : ranks) members.push_back(members_[rank]);
  ANTDT_RETURN_IF_ERROR(links_->reach(peers_among(links_->rank(), members)));
  return std::make_unique<TcpCollective>(links_, std::move(members));
}

Status TcpCollective::send_right(std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  return bytes.empty() ? Status{} : send_to(Side::kRight, bytes);
}

Status TcpCollective::receive_left(std::span<std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(has_neighbour());
  return bytes.empty() ? Status{} : receive_from(Side::kLeft, bytes);
}

Result<std::optional<Duration>> TcpCollective::measure_hop() {
  return trainer::measure_hop(rank(), size(), *this);
}

std::string TcpCollective::description() const {
  return size() == 1 ? std::string() : fmt::format("tcp ({} members)", size());
}

Status TcpCollective::send_to(Side side, std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(links_->send(neighbour(side), bytes));
  return links_->flush();
}

Status TcpCollective::receive_from(Side side, std::span<std::byte> bytes) {
  return links_->receive(neighbour(side), bytes);
}

}  // namespace antdt::trainer
