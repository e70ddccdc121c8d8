#include "trainer/collective/host_groups.h"

#include <algorithm>
#include <map>

namespace antdt::trainer {

std::string format_address(const MemberAddress& address) {
  if (address.host.empty()) return address.tcp;
  return fmt::format("{};{};{}", address.tcp, address.host, address.name);
}

Result<MemberAddress> parse_address(const std::string& text) {
  const std::size_t first = text.find(';');
  if (first == std::string::npos) return MemberAddress{text, {}, {}};
  const std::size_t second = text.find(';', first + 1);
  MemberAddress address{text.substr(0, first), {}, {}};
  if (second != std::string::npos) {
    address.host = text.substr(first + 1, second - first - 1);
    address.name = text.substr(second + 1);
  }
  const bool whole =
      !address.host.empty() && !address.name.empty() && address.name.find(';') == std::string::npos;
  if (whole) return address;
  return fail(ErrorKind::kCorrupt, "'{}' is not the address of a member", text);
}

HostGroups HostGroups::of(std::span<const MemberAddress> members) {
  HostGroups groups;
  std::map<std::string, std::uint32_t> open;  // hosts with room for another member
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    const std::string& host = members[rank].host;
    const auto found = open.find(host);
    const bool joins =
        !host.empty() && found != open.end() && groups.ranks_[found->second].size() < kMostMembers;
    if (!joins) {
      open[host] = static_cast<std::uint32_t>(groups.ranks_.size());
      groups.ranks_.emplace_back();
    }
    const std::uint32_t at =
        joins ? found->second : static_cast<std::uint32_t>(groups.ranks_.size() - 1);
    groups.places_.push_back({at, static_cast<std::uint32_t>(groups.ranks_[at].size())});
    groups.ranks_[at].push_back(rank);
  }
  return groups;
}

std::vector<std::uint32_t> HostGroups::leaders() const {
  std::vector<std::uint32_t> leaders;
  for (const auto& ranks : ranks_) leaders.push_back(ranks.front());
  return leaders;
}

std::string HostGroups::in_words() const {
  if (!any_shared()) return fmt::format("tcp ({} members)", members());
  if (hosts() == 1) return fmt::format("shm ({} members of 1 host)", members());
  return fmt::format("shm and tcp ({} members of {} hosts)", members(), hosts());
}

}  // namespace antdt::trainer
