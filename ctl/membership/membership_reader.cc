// Who reads the checkpoint from which training begins, and who does where that one cannot.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctl/membership/membership.h"

namespace antdt::ctl {

void Membership::on(const StateMoves&, Effects&) {
  if (state_ != State::kSettled) since_ = now_;
}

void Membership::hear_unreadable(const MemberJoined& event) {
  const bool of_this = event.generation == generation_ && reads_checkpoint();
  if (event.join.unreadable.empty() || !of_this) return;
  if (unreadable_.contains(event.member.worker)) return;  // said again
  unreadable_[event.member.worker] = event.join.unreadable;
  reading_failed(event.member);
  failed_formations_ = 0;  // that the others could not receive it is no fault of theirs
}

void Membership::reading_failed(Member reader) {
  ++failed_reads_[reader.worker];
  if (const std::size_t rank = rank_of(reader); rank < members_.size()) {
    ++failed_reads_on_[members_[rank].host];
  }
}

std::optional<CannotSettle> Membership::nobody_can_read() const {
  if (!reads_checkpoint()) return {};
  std::string said;
  for (const ExpectedMember& e : members_) {
    const auto found = unreadable_.find(e.member.worker);
    if (found == unreadable_.end()) return {};
    said += fmt::format("{}{} on {}: {}", said.empty() ? "" : "; ", e.member.worker, e.host,
                        found->second);
  }
  return CannotSettle{fmt::format("no member can read the checkpoint {}: {}", restore_, said),
                      "checkpoint", 1};
}

// Where it failed least often, first by host.
std::uint32_t Membership::choose_reader() const {
  const auto failures = [&](const ExpectedMember& e) {
    const auto on_host = failed_reads_on_.find(e.host);
    const auto of_worker = failed_reads_.find(e.member.worker);
    return std::pair(on_host == failed_reads_on_.end() ? 0U : on_host->second,
                     of_worker == failed_reads_.end() ? 0U : of_worker->second);
  };
  const auto least = std::ranges::min_element(members_, {}, failures);
  return static_cast<std::uint32_t>(least - members_.begin());
}

}  // namespace antdt::ctl
