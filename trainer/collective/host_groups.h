// Which members of a group share a host. Pure.
//
// Each member publishes an address for the others. In addition to where it listens for tcp, it may
// declare on which host it is and where members of that host reach it. Every member decides from
// the same addresses, so all of them come to the same groups, and nobody falls back to tcp alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace antdt::trainer {

struct MemberAddress {
  std::string tcp;   // "10.0.0.7:29400"
  std::string host;  // host identity; empty: it shares memory with nobody
  std::string name;  // name of its abstract unix socket; only with a host
};

// "10.0.0.7:29400", or "10.0.0.7:29400;HOST;NAME". No part contains a semicolon.
[[nodiscard]] std::string format_address(const MemberAddress& address);
// kCorrupt, which names the text.
[[nodiscard]] Result<MemberAddress> parse_address(const std::string& text);

// The members, by rank, of each host. A member that declared no host is alone on one.
class HostGroups {
 public:
  // The most members of one group: each has a connection to every other. A host with more of them
  // counts as several hosts.
  static constexpr std::size_t kMostMembers = 64;

  [[nodiscard]] static HostGroups of(std::span<const MemberAddress> members);

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
  // "shm (4 members of 1 host)", "shm and tcp (4 members of 2 hosts)", "tcp (4 members)".
  [[nodiscard]] std::string in_words() const;

 private:
  std::vector<std::vector<std::uint32_t>> ranks_;  // by host
  std::vector<Place> places_;                      // by rank
};

}  // namespace antdt::trainer
