#include "trainer/ps/closer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace antdt::ps {
namespace {

// Those of all workers together are a number, too: a decision of another weight is applied by
// nobody, and the step would stand still.
constexpr double kMostWeight = std::numeric_limits<float>::max();
constexpr std::string_view kApplied = "applied";
constexpr std::string_view kLate = "late";

void add(std::vector<wire::PsRange>& ranges, wire::PsRange range) {
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
    if (revoked_.contains(member)) continue;
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
    ++counts_.repeated;
    effects.emplace_back(Answer{member, worker.last});
    return;
  }
  if (!sound(worker, commit)) {
    const std::uint64_t place = worker.applied.empty() ? 0 : worker.applied.back().to;
    effects.emplace_back(
        Refuse{member,
               {"invalid",
                fmt::format("push {} cannot follow push {} (places {} to {} of phase {} after "
                            "{} of phase {}, weight {}, version {} of {})",
                            commit.number, worker.last.number, commit.from, commit.to, commit.phase,
                            place, worker.phase, commit.weight, commit.version, updates_)}});
    return;
  }
  if (worker.pending && worker.pending->number == commit.number) ++counts_.repeated;
  if (commit.phase > worker.phase) {
    worker.phase = commit.phase;
    worker.applied.clear();
  }
  worker.idle = false;
  if (barrier_ && commit.version < updates_) {
    worker.pending.reset();  // what it said before, if that waits, is not its newest
    return answer(member, worker, commit.number, kLate, effects);
  }
  worker.pending = commit;
  if (barrier_) return close_if_complete(effects);
  if (!is_closed()) decide({member}, effects);
}

bool Closer::sound(const Worker& worker, const wire::PsCommit& commit) const {
  const bool same_phase = commit.phase == worker.phase;
  const std::uint64_t place = same_phase && !worker.applied.empty() ? worker.applied.back().to : 0;
  return commit.number > worker.last.number && commit.phase >= worker.phase &&
         commit.from >= place && commit.from <= commit.to && commit.weight > 0 &&
         commit.weight <= kMostWeight && (!barrier_ || commit.version <= updates_);
}

void Closer::idle(Member member, Effects& effects) {
  const auto found = workers_.find(member);
  if (found == workers_.end() || found->second.pending) return;
  found->second.idle = true;
  close_if_complete(effects);
}

wire::PsPlaces Closer::revoke(Member member, Effects& effects) {
  const auto [revoked, first] = revoked_.try_emplace(member, places(member));
  if (!first) return revoked->second;
  workers_.erase(member);
  // Also of one that this home has not heard of: another server may have.
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.left.push_back({member.worker, member.attempt});
  effects.emplace_back(std::move(decision));
  close_if_complete(effects);
  return revoked->second;
}

void Closer::cut(std::uint64_t number, const std::string& directory, Effects& effects) {
  if (number <= cut_) return;
  cut_ = number;
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.cut = number;
  decision.directory = directory;
  effects.emplace_back(std::move(decision));
}

void Closer::set_last_cut(std::uint64_t number, Effects& effects) {
  last_cut_ = number;
  if (barrier_) return close_if_complete(effects);
  if (is_closed()) return;
  std::vector<Member> waiting;
  for (const auto& [member, worker] : workers_) {
    if (worker.pending) waiting.push_back(member);
  }
  for (const Member member : waiting) decide({member}, effects);
}

wire::PsPlaces Closer::places(Member member) const {
  const auto revoked = revoked_.find(member);
  if (revoked != revoked_.end()) return revoked->second;
  wire::PsPlaces places{member.worker, member.attempt, 0, {}};
  const auto found = workers_.find(member);
  if (found == workers_.end()) return places;
  places.phase = found->second.phase;
  places.applied = found->second.applied;
  return places;
}

std::vector<wire::PsPlaces> Closer::places() const {
  std::set<Member> members;
  for (const auto& [member, worker] : workers_) members.insert(member);
  for (const auto& [member, worker] : revoked_) members.insert(member);
  std::vector<wire::PsPlaces> all;
  for (const Member member : members) all.push_back(places(member));
  return all;
}

void Closer::close_if_complete(Effects& effects) {
  if (!barrier_ || is_closed()) return;
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
    answer(member, worker, commit.number, kApplied, effects);
  }
}

void Closer::answer(Member member, Worker& worker, std::uint64_t number, std::string_view status,
                    Effects& effects) {
  ++(status == kApplied ? counts_.applied : counts_.late);
  worker.last = {number, std::string(status), updates_};
  effects.emplace_back(Answer{member, worker.last});
}

}  // namespace antdt::ps
