#include "trainer/ps/closer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace antdt::ps {
namespace {

void add(std::vector<PlaceRange>& ranges, PlaceRange range) {
  if (range.from == range.to) return;
  if (!ranges.empty() && ranges.back().to == range.from) {
    ranges.back().to = range.to;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

void Closer::add_workers(const std::vector<Member>& workers, std::uint32_t backups,
                         Effects& effects) {
  backups_ = backups;
  for (const Member member : workers) {
    const auto [at, added] = workers_.try_emplace(member);
    if (added) at->second.idle = updates_ > first_;
  }
  close_if_complete(effects);
}

void Closer::commit(Member member, const wire::PsCommit& commit, Effects& effects) {
  const auto found = workers_.find(member);
  if (found == workers_.end()) {
    effects.emplace_back(
        Refuse{member, {"stale", "this worker was replaced, what it pushes does not count"}});
    return;
  }
  Worker& worker = found->second;
  if (commit.number == worker.last.number) {
    effects.emplace_back(Answer{member, worker.last});
    return;
  }
  const std::uint64_t place = worker.applied.empty() ? 0 : worker.applied.back().to;
  const bool sound = commit.number > worker.last.number && commit.from >= place &&
                     commit.from <= commit.to && commit.weight > 0 &&
                     std::isfinite(commit.weight) && (!barrier_ || commit.version <= updates_);
  if (!sound) {
    effects.emplace_back(
        Refuse{member,
               {"invalid", fmt::format("push {} cannot follow push {} (places {} to {} "
                                       "after {}, weight {}, version {} of {})",
                                       commit.number, worker.last.number, commit.from, commit.to,
                                       place, commit.weight, commit.version, updates_)}});
    return;
  }
  worker.idle = false;
  if (barrier_ && commit.version < updates_) {
    return answer(member, worker, commit.number, "late", effects);
  }
  worker.pending = commit;
  barrier_ ? close_if_complete(effects) : decide({member}, effects);
}

void Closer::idle(Member member, Effects& effects) {
  const auto found = workers_.find(member);
  if (found == workers_.end() || found->second.pending) return;
  found->second.idle = true;
  close_if_complete(effects);
}

std::vector<PlaceRange> Closer::revoke(Member member, Effects& effects) {
  const auto found = workers_.find(member);
  if (found == workers_.end()) return {};
  std::vector<PlaceRange> applied = std::move(found->second.applied);
  workers_.erase(found);
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.left.push_back({member.worker, member.attempt});
  effects.emplace_back(std::move(decision));
  close_if_complete(effects);
  return applied;
}

void Closer::cut(std::uint64_t number, const std::string& directory, Effects& effects) {
  if (!barrier_ || number <= cut_) return;
  cut_ = number;
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.cut = number;
  decision.directory = directory;
  effects.emplace_back(std::move(decision));
}

std::vector<PlaceRange> Closer::applied(Member member) const {
  const auto found = workers_.find(member);
  return found == workers_.end() ? std::vector<PlaceRange>{} : found->second.applied;
}

void Closer::close_if_complete(Effects& effects) {
  if (!barrier_) return;
  std::vector<Member> committed;
  std::size_t active = 0;
  for (const auto& [member, worker] : workers_) {
    if (!worker.idle) ++active;
    if (worker.pending) committed.push_back(member);
  }
  const std::size_t enough = workers_.size() - std::min<std::size_t>(backups_, workers_.size());
  const std::size_t needed = std::max<std::size_t>(1, std::min(enough, active));
  if (committed.size() >= needed) decide(committed, effects);
}

void Closer::decide(const std::vector<Member>& members, Effects& effects) {
  wire::PsDecision decision;
  decision.number = ++decisions_;
  ++updates_;
  for (const Member member : members) {
    const wire::PsCommit& commit = *workers_.at(member).pending;
    decision.weight += commit.weight;
    decision.pushes.push_back({member.worker, member.attempt, commit.number});
  }
  effects.emplace_back(std::move(decision));
  for (const Member member : members) {
    Worker& worker = workers_.at(member);
    const wire::PsCommit commit = *std::exchange(worker.pending, std::nullopt);
    add(worker.applied, {commit.from, commit.to});
    answer(member, worker, commit.number, "applied", effects);
  }
}

void Closer::answer(Member member, Worker& worker, std::uint64_t number, const char* status,
                    Effects& effects) {
  worker.last = {number, status, updates_};
  effects.emplace_back(Answer{member, worker.last});
}

}  // namespace antdt::ps
