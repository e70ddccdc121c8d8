#include "trainer/ps/closer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/wire/envelope.h"

namespace antdt::ps {
namespace {

// The sum over all workers must be a number, too: servers do not apply a decision with another
// weight, and the step would never complete.
constexpr double kMostWeight = std::numeric_limits<float>::max();

void add(std::vector<wire::PsRange>& ranges, wire::PsRange range) {
  if (range.from == range.to) return;
  if (!ranges.empty() && ranges.back().to == range.from) {
    ranges.back().to = range.to;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

void Closer::step(const closer::Input& input, closer::Effects& out) {
  std::visit([&](const auto& i) { on(i, out); }, input);
  check_invariants();
}

void Closer::check_invariants() const {
  ANTDT_CHECK(updates_ >= first_ && updates_ - first_ <= decisions_,
              "{} updates after {} were decided in {} decisions", updates_, first_, decisions_);
}

void Closer::on(const closer::WorkersAdded& input, closer::Effects& out) {
  backups_ = input.backups;
  for (const Member member : input.workers) {
    if (revoked_.contains(member)) continue;
    const auto [at, added] = workers_.try_emplace(member);
    if (added) at->second.idle = updates_ > first_;
  }
  close_if_complete(out);
}

void Closer::on(const closer::CommitHeard& input, closer::Effects& out) {
  const auto& [member, commit] = input;
  const auto found = workers_.find(member);
  if (found == workers_.end()) {
    out.emplace_back(closer::RefuseCommit{
        member,
        {wire::RefusalCode::kStale, "this worker was replaced, what it pushes does not count"}});
    return;
  }
  Worker& worker = found->second;
  if (commit.number == worker.last.number) {
    ++counts_.repeated;
    out.emplace_back(closer::AnswerCommit{member, worker.last});
    return;
  }
  if (!sound(worker, commit)) {
    const std::uint64_t place = worker.applied.empty() ? 0 : worker.applied.back().to;
    out.emplace_back(closer::RefuseCommit{
        member,
        {wire::RefusalCode::kInvalid,
         fmt::format("push {} cannot follow push {} (places {} to {} of phase {} after "
                     "{} of phase {}, weight {}, version {} of {})",
                     commit.number, worker.last.number, commit.from, commit.to, commit.phase, place,
                     worker.phase, commit.weight, commit.version, updates_)}});
    return;
  }
  if (worker.pending && worker.pending->number == commit.number) ++counts_.repeated;
  if (commit.phase > worker.phase) {
    worker.phase = commit.phase;
    worker.applied.clear();
  }
  worker.idle = false;
  if (barrier_ && commit.version < updates_) {
    worker.pending.reset();  // an earlier commit of this worker that waits is not its newest
    return answer(member, worker, commit.number, wire::PsFate::kLate, out);
  }
  worker.pending = commit;
  if (barrier_) return close_if_complete(out);
  if (!is_closed()) decide({member}, out);
}

bool Closer::sound(const Worker& worker, const wire::PsCommit& commit) const {
  const bool same_phase = commit.phase == worker.phase;
  const std::uint64_t place = same_phase && !worker.applied.empty() ? worker.applied.back().to : 0;
  return commit.number > worker.last.number && commit.phase >= worker.phase &&
         commit.from >= place && commit.from <= commit.to && commit.weight > 0 &&
         commit.weight <= kMostWeight && (!barrier_ || commit.version <= updates_);
}

void Closer::on(const closer::IdleHeard& input, closer::Effects& out) {
  const auto found = workers_.find(input.member);
  if (found == workers_.end() || found->second.pending) return;
  found->second.idle = true;
  close_if_complete(out);
}

// This also holds for a worker that this home has not heard of: another server may have.
void Closer::on(const closer::WorkerRevoked& input, closer::Effects& out) {
  const Member member = input.member;
  if (!revoked_.try_emplace(member, places(member)).second) return;
  workers_.erase(member);
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.left.push_back({member.worker, member.attempt});
  out.emplace_back(closer::Decide{std::move(decision)});
  close_if_complete(out);
}

void Closer::on(const closer::CutMarked& input, closer::Effects& out) {
  if (input.number <= cut_) return;
  cut_ = input.number;
  wire::PsDecision decision;
  decision.number = ++decisions_;
  decision.cut = input.number;
  decision.directory = input.directory;
  out.emplace_back(closer::Decide{std::move(decision)});
}

void Closer::on(const closer::LastCutSet& input, closer::Effects& out) {
  last_cut_ = input.number;
  if (barrier_) return close_if_complete(out);
  if (is_closed()) return;
  std::vector<Member> waiting;
  for (const auto& [member, worker] : workers_) {
    if (worker.pending) waiting.push_back(member);
  }
  for (const Member member : waiting) decide({member}, out);
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
  std::vector<wire::PsPlaces> all;
  for (const auto& [member, worker] : workers_) all.push_back(places(member));
  return all;
}

void Closer::close_if_complete(closer::Effects& out) {
  if (!barrier_ || is_closed()) return;
  std::vector<Member> committed;
  std::size_t active = 0;
  for (const auto& [member, worker] : workers_) {
    if (!worker.idle) ++active;
    if (worker.pending) committed.push_back(member);
  }
  const std::size_t enough = workers_.size() - std::min<std::size_t>(backups_, workers_.size());
  const std::size_t needed = std::max<std::size_t>(1, std::min(enough, active));
  if (committed.size() >= needed) decide(committed, out);
}

void Closer::decide(const std::vector<Member>& members, closer::Effects& out) {
  wire::PsDecision decision;
  decision.number = ++decisions_;
  ++updates_;
  for (const Member member : members) {
    const wire::PsCommit& commit = *workers_.at(member).pending;
    decision.weight += commit.weight;
    decision.pushes.push_back({member.worker, member.attempt, commit.number});
  }
  out.emplace_back(closer::Decide{std::move(decision)});
  for (const Member member : members) {
    Worker& worker = workers_.at(member);
    const wire::PsCommit commit = *std::exchange(worker.pending, std::nullopt);
    add(worker.applied, {commit.from, commit.to});
    answer(member, worker, commit.number, wire::PsFate::kApplied, out);
  }
}

void Closer::answer(Member member, Worker& worker, std::uint64_t number, wire::PsFate status,
                    closer::Effects& out) {
  ++(status == wire::PsFate::kApplied ? counts_.applied : counts_.late);
  worker.last = {number, status, updates_};
  out.emplace_back(closer::AnswerCommit{member, worker.last});
}

}  // namespace antdt::ps
