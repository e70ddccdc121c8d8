#include "ctl/servers/briefing.h"

#include <algorithm>

namespace antdt::ctl::servers {

void Briefing::begin_group() {
  number_ = 0;
  heard_.clear();
}

void Briefing::heard(Member server, std::uint64_t number) {
  std::uint64_t& newest = heard_[server];
  newest = std::max(newest, number);
}

std::uint64_t Briefing::heard_by(Member server) const {
  const auto found = heard_.find(server);
  return found == heard_.end() ? 0 : found->second;
}

bool Briefing::has_heard_newest(Member server) const {
  return has_heard_any(server) && heard_by(server) >= number_;
}

std::uint64_t Briefing::heard_by_all(const std::vector<GroupServer>& servers) const {
  std::uint64_t least = number_;
  for (const GroupServer& s : servers) least = std::min(least, heard_by(s.member()));
  return least;
}

bool Briefing::is_repeat_due(Member server, MonoTime now) const {
  const auto said = said_.find(server);
  return now - (said == said_.end() ? MonoTime{} : said->second) >= kRepeat;
}

}  // namespace antdt::ctl::servers
