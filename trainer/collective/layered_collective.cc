#include "trainer/collective/layered_collective.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace antdt::trainer {

LayeredCollective::LayeredCollective(Parts parts)
    : groups_(std::move(parts.groups)),
      host_(std::move(parts.host)),
      bell_(std::move(parts.bell)),
      links_(std::move(parts.links)),
      rank_(links_->rank()) {
  if (leads() && groups_.hosts() > 1) {
    leaders_ = std::make_unique<TcpCollective>(links_, groups_.leaders());
  }
  // A group ends what it knows nothing of.
  links_->end_together(
      [host = std::weak_ptr(host_)](const Error& why) {
        if (const auto group = host.lock()) group->end(why);
      },
      [bell = bell_] { bell->abort(); });
}

std::vector<std::uint32_t> LayeredCollective::tcp_peers(const HostGroups& groups,
                                                        std::uint32_t rank) {
  std::set<std::uint32_t> peers;
  const HostGroups::Place& place = groups.place_of(rank);
  if (place.index == 0 && groups.hosts() > 1) {
    const auto others = TcpCollective::peers_among(rank, groups.leaders());
    peers.insert(others.begin(), others.end());
  }
  const auto size = static_cast<std::uint32_t>(groups.members());
  for (const std::uint32_t neighbour : {(rank + 1) % size, (rank + size - 1) % size}) {
    if (groups.place_of(neighbour).host != place.host) peers.insert(neighbour);
  }
  return {peers.begin(), peers.end()};
}

void LayeredCollective::abort() { links_->abort(); }  // and the bell with them

Status LayeredCollective::checked(Status status) {
  if (status) return status;
  if (host_) host_->end(status.error());
  links_->end(status.error());
  return status;
}

// ------------------------------------------------------------------- sums

template <class T>
Status LayeredCollective::sum(std::span<T> values) {
  return checked(groups_.hosts() == 1 ? host_->allreduce(values) : sum_over_hosts(values));
}

template <class T>
Status LayeredCollective::sum_over_hosts(std::span<T> values) {
  if (host_) ANTDT_RETURN_IF_ERROR(host_->reduce(values));
  if (leaders_) ANTDT_RETURN_IF_ERROR(leaders_->allreduce_sum(values));
  return host_ ? host_->broadcast(std::as_writable_bytes(values)) : Status{};
}

Status LayeredCollective::allreduce_sum(std::span<float> values) { return sum(values); }
Status LayeredCollective::allreduce_sum(std::span<double> values) { return sum(values); }

// ------------------------------------------------------------------- gathering

Status LayeredCollective::allgather_parts(std::span<const std::size_t> sizes,
                                          std::span<std::byte> all) {
  const std::size_t total = std::reduce(sizes.begin(), sizes.end());
  if (sizes.size() != size() || total > all.size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} parts of {} bytes of {} members into {}",
                sizes.size(), total, size(), all.size());
  }
  parts_.clear();
  for (std::size_t begin = 0; const std::size_t bytes : sizes) {
    parts_.push_back(all.subspan(begin, bytes));
    begin += bytes;
  }
  parts_here_.clear();
  for (const std::uint32_t rank : groups_.ranks_on(groups_.place_of(rank_).host)) {
    parts_here_.push_back(parts_[rank]);
  }
  if (host_) ANTDT_RETURN_IF_ERROR(checked(host_->gather(parts_here_)));
  return groups_.hosts() == 1 ? Status{} : checked(gather_over_hosts());
}

// The ranks of a host need not follow one another, so what the leaders exchange is in the order of
// the hosts.
Status LayeredCollective::gather_over_hosts() {
  const auto each_in_order = [&](auto f) {
    for (std::size_t host = 0, at = 0; host < groups_.hosts(); ++host) {
      for (const std::uint32_t rank : groups_.ranks_on(host)) {
        f(host, parts_[rank], at);
        at += parts_[rank].size();
      }
    }
  };
  bytes_of_hosts_.assign(groups_.hosts(), 0);
  std::size_t total = 0;
  each_in_order([&](std::size_t host, std::span<std::byte> part, std::size_t) {
    bytes_of_hosts_[host] += part.size();
    total += part.size();
  });
  if (by_host_.size() < total) by_host_.resize(total);
  const std::span<std::byte> all = std::span(by_host_).first(total);
  const std::size_t own_host = groups_.place_of(rank_).host;
  if (leaders_) {
    each_in_order([&](std::size_t host, std::span<std::byte> part, std::size_t at) {
      if (host != own_host) return;
      std::ranges::copy(part, all.begin() + static_cast<std::ptrdiff_t>(at));
    });
    ANTDT_RETURN_IF_ERROR(leaders_->allgather_parts(bytes_of_hosts_, all));
  }
  if (host_) ANTDT_RETURN_IF_ERROR(host_->broadcast(all));
  each_in_order([&](std::size_t host, std::span<std::byte> part, std::size_t at) {
    if (host != own_host) std::ranges::copy(all.subspan(at, part.size()), part.begin());
  });
  return {};
}

// ------------------------------------------------------------------- among some

Status LayeredCollective::alltoall_parts(std::span<const std::size_t> sent_sizes,
                                         std::span<const std::byte> sent,
                                         std::span<const std::size_t> received_sizes,
                                         std::span<std::byte> received) {
  if (!all_) {
    std::vector<std::uint32_t> ranks(size());
    std::iota(ranks.begin(), ranks.end(), 0U);
    all_.emplace(links_, std::move(ranks));
  }
  return all_->alltoall_parts(sent_sizes, sent, received_sizes, received);
}

Result<std::unique_ptr<Collective>> LayeredCollective::group(std::span<const std::uint32_t> ranks) {
  ANTDT_RETURN_IF_ERROR(is_group(rank_, size(), ranks));
  std::vector<std::uint32_t> members(ranks.begin(), ranks.end());
  ANTDT_RETURN_IF_ERROR(links_->reach(TcpCollective::peers_among(rank_, members)));
  return std::make_unique<TcpCollective>(links_, std::move(members));
}

// ------------------------------------------------------------------- along the ring

std::uint32_t LayeredCollective::neighbour(Side side) const {
  return (rank_ + (side == Side::kRight ? 1 : size() - 1)) % size();
}

std::optional<std::uint32_t> LayeredCollective::neighbour_here(Side side) const {
  const HostGroups::Place& place = groups_.place_of(neighbour(side));
  if (place.host != groups_.place_of(rank_).host) return std::nullopt;
  return place.index;
}

Status LayeredCollective::send_to(Side side, std::span<const std::byte> bytes) {
  if (const auto here = neighbour_here(side)) return checked(host_->send(side, *here, bytes));
  ANTDT_RETURN_IF_ERROR(checked(links_->send(neighbour(side), bytes)));
  return checked(links_->flush());
}

Status LayeredCollective::receive_from(Side side, std::span<std::byte> bytes) {
  const Side towards_here = side == Side::kRight ? Side::kLeft : Side::kRight;
  if (const auto here = neighbour_here(side)) {
    return checked(host_->receive(towards_here, *here, bytes));
  }
  return checked(links_->receive(neighbour(side), bytes));
}

Status LayeredCollective::send_right(std::span<const std::byte> bytes) {
  return bytes.empty() ? Status{} : send_to(Side::kRight, bytes);
}

Status LayeredCollective::receive_left(std::span<std::byte> bytes) {
  return bytes.empty() ? Status{} : receive_from(Side::kLeft, bytes);
}

Result<std::optional<Duration>> LayeredCollective::measure_hop() {
  return trainer::measure_hop(rank_, size(), *this);
}

}  // namespace antdt::trainer
