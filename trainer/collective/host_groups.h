// Which members of a group share a host. Pure.
//
// Beside its address for tcp each member publishes on which host it is and how members of that host
// reach it. Every member decides from the same words of all, so all come to the same groups, and
// nobody falls back to tcp alone. If any member publishes nothing, the whole group uses tcp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::trainer {

// MemberAddress::sharing, "HOST NAME"; neither has a space.
struct Sharing {
  std::string host;  // host identity: members with the same one can share memory
  std::string name;  // name of its abstract unix socket
};
[[nodiscard]] std::string to_text(const Sharing& sharing);
// kCorrupt, which names the text.
[[nodiscard]] Result<Sharing> parse_sharing(const std::string& text);

// The members, by rank, of each host.
class HostGroups {
 public:
  // The most members of one group: each has a connection to every other. A host with more of them
  // counts as several hosts.
  static constexpr std::size_t kMostMembers = 64;

  // `hosts` by rank. If any is empty, each member is alone on its host.
  [[nodiscard]] static HostGroups of(std::span<const std::string> hosts);

  struct Place {
    std::uint32_t host = 0;   // index of its host, by the lowest rank on each
    std::uint32_t index = 0;  // its place among the host's members
  };
  [[nodiscard]] std::size_t hosts() const { return ranks_.size(); }
  [[nodiscard]] std::size_t members() const { return places_.size(); }
  // In ascending order; the first one is the host's leader.
  [[nodiscard]] const std::vector<std::uint32_t>& ranks_on(std::size_t host) const {
    return ranks_[host];
  }
  [[nodiscard]] const Place& place_of(std::uint32_t rank) const { return places_[rank]; }
  // The leaders of all hosts, by host.
  [[nodiscard]] std::vector<std::uint32_t> leaders() const;
  // Whether any two members share a host.
  [[nodiscard]] bool any_shared() const { return hosts() < members(); }
  // "shm (4 members of 1 host)", "shm and tcp (4 members, 2 groups that share memory)"; only with
  // any_shared(). A member that is alone on its host is no such group.
  [[nodiscard]] std::string in_words() const;

 private:
  std::vector<std::vector<std::uint32_t>> ranks_;  // by host
  std::vector<Place> places_;                      // by rank
};

}  // namespace antdt::trainer
