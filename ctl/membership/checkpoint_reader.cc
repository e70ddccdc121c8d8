#include "ctl/membership/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace antdt::ctl::membership {

void CheckpointReader::clear() {
  failed_on_.clear();
  failed_.clear();
  unreadable_.clear();
}

// Chooses one that has not said that it cannot, and for which reading failed least often, comparing
// by host first. Hosts may have different numbers of members.
void CheckpointReader::choose(const MemberList& members) {
  const auto failures = [&](const ExpectedMember& e) {
    const auto on_host = failed_on_.find(e.host);
    const auto of_worker = failed_.find(e.member.worker);
    return std::tuple(unreadable_.contains(e.member.worker),
                      on_host == failed_on_.end() ? 0U : on_host->second,
                      of_worker == failed_.end() ? 0U : of_worker->second);
  };
  const auto least = std::ranges::min_element(members.all(), {}, failures);
  rank_ = static_cast<std::uint32_t>(least - members.all().begin());
}

bool CheckpointReader::hear_unreadable(const ExpectedMember& reader, Why why) {
  if (!unreadable_.try_emplace(reader.member.worker, std::move(why)).second) return false;
  reading_failed(reader);
  return true;
}

void CheckpointReader::reading_failed(const ExpectedMember& reader) {
  ++failed_[reader.member.worker];
  if (!reader.host.empty()) ++failed_on_[reader.host];
}

std::optional<CheckpointReader::Why> CheckpointReader::nobody_can(const MemberList& members) const {
  Why all;
  for (const ExpectedMember& e : members.all()) {
    const auto found = unreadable_.find(e.member.worker);
    if (found == unreadable_.end()) return {};
    all.text += fmt::format("{}{} on {}: {}", all.text.empty() ? "" : "; ", e.member.worker, e.host,
                            found->second.text);
    all.may_pass |= found->second.may_pass;
  }
  return all;
}

}  // namespace antdt::ctl::membership
