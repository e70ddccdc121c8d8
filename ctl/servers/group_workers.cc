#include "ctl/servers/group_workers.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::ctl::servers {

void GroupWorkers::clear() {
  workers_.clear();
  leaving_.clear();
}

void GroupWorkers::begin(const std::vector<Member>& workers) {
  clear();
  for (const Member m : workers) add(m, 1);
}

void GroupWorkers::add(Member worker, std::uint64_t from) { workers_[worker].from = from; }

void GroupWorkers::admit_all() {
  for (auto& [member, worker] : workers_) worker.state = State::kAdmitted;
}

// From: named. To: admitted. A worker is not admitted until its predecessor is settled, because the
// ledger does not know until then which of the predecessor's records are free.
std::vector<Member> GroupWorkers::admit(std::uint64_t heard) {
  std::vector<Member> admitted;
  for (auto& [member, worker] : workers_) {
    const bool follows = std::ranges::any_of(
        leaving_, [id = member.worker](Member left) { return left.worker == id; });
    if (worker.state == State::kAdmitted || worker.from > heard || follows) continue;
    worker.state = State::kAdmitted;
    admitted.push_back(member);
  }
  return admitted;
}

bool GroupWorkers::lose(Member worker) {
  if (workers_.erase(worker) == 0) return false;
  leaving_.push_back(worker);
  return true;
}

bool GroupWorkers::settle(Member worker) { return std::erase(leaving_, worker) > 0; }

std::optional<ReportTrouble> GroupWorkers::note_trouble(const GroupJoinRequested& said,
                                                        MonoTime now, Duration host_lost_after) {
  Worker& worker = workers_.at(said.member);
  if (worker.troubles > 0 && now - worker.troubled < kSameTrouble) return std::nullopt;
  const bool servers = said.trouble == Trouble::kServers;
  if (servers && now - worker.troubled > host_lost_after + kOtherTrouble) worker.troubles = 0;
  if (worker.troubles == 0) worker.first_troubled = now;
  worker.troubled = now;
  ++worker.troubles;
  const bool may_be_host = servers && now - worker.first_troubled < host_lost_after;
  return ReportTrouble{said.member, said.problem, worker.troubles >= kMostTroubles && !may_be_host,
                       said.trouble};
}

std::vector<Member> GroupWorkers::admitted() const {
  std::vector<Member> admitted;
  for (const auto& [member, worker] : workers_) {
    if (worker.state == State::kAdmitted) admitted.push_back(member);
  }
  return admitted;
}

bool GroupWorkers::is_admitted(Member worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.state == State::kAdmitted;
}

std::vector<Member> GroupWorkers::present() const {
  std::vector<Member> all;
  for (const auto& [member, worker] : workers_) all.push_back(member);
  return all;
}

void GroupWorkers::restore(const std::vector<Member>& present, const std::vector<Member>& leaving,
                           std::uint64_t from) {
  for (const Member m : present) add(m, from);
  leaving_ = leaving;
}

void GroupWorkers::check_invariants() const {
  for (const Member m : leaving_) {
    ANTDT_CHECK(!workers_.contains(m), "{}.{} is in the group and leaves it", m.worker, m.attempt);
  }
}

}  // namespace antdt::ctl::servers
