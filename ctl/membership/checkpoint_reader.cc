#include "ctl/membership/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace antdt::ctl::membership {

void CheckpointReader::clear() {
  failed_on_.clear();
  failed_.clear();
  unreadable_.clear();
}

// Chooses the member for which reading failed least often, comparing by host first.
void CheckpointReader::choose(const MemberList& members) {
  const auto failures = [&](const ExpectedMember& e) {
    const auto on_host = failed_on_.find(e.host);
    const auto of_worker = failed_.find(e.member.worker);
    return std::pair(on_host == failed_on_.end() ? 0U : on_host->second,
                     of_worker == failed_.end() ? 0U : of_worker->second);
  };
  const auto least = std::ranges::min_element(members.all(), {}, failures);
  rank_ = static_cast<std::uint32_t>(least - members.all().begin());
}

bool CheckpointReader::hear_unreadable(const ExpectedMember& reader, const std::string& why) {
  if (!unreadable_.try_emplace(reader.member.worker, why).second) return false;
  reading_failed(reader);
  return true;
}

void CheckpointReader::reading_failed(const ExpectedMember& reader) {
  ++failed_[reader.member.worker];
  if (!reader.host.empty()) ++failed_on_[reader.host];
}

std::optional<std::string> CheckpointReader::nobody_can(const MemberList& members) const {
  std::string said;
  for (const ExpectedMember& e : members.all()) {
    const auto found = unreadable_.find(e.member.worker);
    if (found == unreadable_.end()) return {};
    said += fmt::format("{}{} on {}: {}", said.empty() ? "" : "; ", e.member.worker, e.host,
                        found->second);
  }
  return said;
}

}  // namespace antdt::ctl::membership
