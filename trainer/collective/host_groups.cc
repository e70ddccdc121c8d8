#include "trainer/collective/host_groups.h"

#include <algorithm>
#include <map>

namespace antdt::trainer {

std::string to_text(const Sharing& sharing) {
  return fmt::format("{} {}", sharing.host, sharing.name);
}

Result<Sharing> parse_sharing(const std::string& text) {
  const std::size_t space = text.find(' ');
  const bool whole = space != std::string::npos && space > 0 && space + 1 < text.size() &&
                     text.find(' ', space + 1) == std::string::npos;
  if (whole) return Sharing{text.substr(0, space), text.substr(space + 1)};
  return fail(ErrorKind::kCorrupt, "'{}' does not say on which host a member is", text);
}

HostGroups HostGroups::of(std::span<const std::string> hosts) {
  HostGroups groups;
  const bool all_say = std::ranges::find(hosts, std::string()) == hosts.end();
  std::map<std::string, std::uint32_t> newest;  // the group of a host that others join
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    const auto found = newest.find(hosts[rank]);
    const bool joins =
        all_say && found != newest.end() && groups.ranks_[found->second].size() < kMostMembers;
    const auto at = joins ? found->second : static_cast<std::uint32_t>(groups.ranks_.size());
    if (!joins) {
      newest[hosts[rank]] = at;
      groups.ranks_.emplace_back();
    }
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
  if (hosts() == 1) return fmt::format("shm ({} members of 1 host)", members());
  const auto sharing =
      std::ranges::count_if(ranks_, [](const auto& ranks) { return ranks.size() > 1; });
  return fmt::format("shm and tcp ({} members, {})", members(),
                     sharing == 1 ? "1 group that shares memory"
                                  : fmt::format("{} groups that share memory", sharing));
}

}  // namespace antdt::trainer
