#include "trainer/ps/distribution.h"

#include <algorithm>
#include <utility>

namespace antdt::ps {

Distribution::Distribution(std::uint32_t own, std::uint32_t servers) {
  for (std::uint32_t server = 0; server < servers; ++server) {
    if (server != own) peers_.push_back({server});
  }
}

void Distribution::add(const wire::PsDecision& decision) {
  if (!peers_.empty()) decisions_.push_back(decision);
}

void Distribution::acknowledged(std::uint32_t server, std::uint64_t number) {
  const auto peer = std::ranges::find(peers_, server, &Peer::server);
  if (peer == peers_.end()) return;
  peer->acknowledged = std::max(peer->acknowledged, number);
  const std::uint64_t least = std::ranges::min(peers_, {}, &Peer::acknowledged).acknowledged;
  while (!decisions_.empty() && decisions_.front().number <= least) decisions_.pop_front();
}

void Distribution::no_room(std::uint32_t server, std::uint64_t number) {
  const auto peer = std::ranges::find(peers_, server, &Peer::server);
  if (peer != peers_.end()) peer->said = std::min(peer->said, number - 1);
}

void Distribution::look() {
  for (Peer& peer : peers_) {
    if (std::exchange(peer.acknowledged_before, peer.acknowledged) == peer.acknowledged) {
      peer.said = peer.acknowledged;
    }
  }
}

std::vector<Distribution::Tell> Distribution::unsaid() {
  std::vector<Tell> tell;
  if (decisions_.empty()) return tell;
  const std::uint64_t first = decisions_.front().number;
  for (Peer& peer : peers_) {
    const std::uint64_t told = std::max(peer.said, peer.acknowledged);
    const std::size_t next = told < first ? 0 : told - first + 1;
    const std::size_t end = std::min(decisions_.size(), next + kAtOnce);
    for (std::size_t i = next; i < end; ++i) {
      tell.push_back({peer.server, decisions_[i]});
      peer.said = decisions_[i].number;
    }
  }
  return tell;
}

}  // namespace antdt::ps
