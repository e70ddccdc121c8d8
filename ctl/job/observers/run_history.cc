#include "ctl/job/observers/run_history.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {
namespace history = shard_server::history;
namespace {

constexpr Duration kMoment = std::chrono::seconds(1);

// The grants of a holder from place `from` on, in its order. Committed grants are included as far
// back as the ledger still has them.
void add_grants(const shard_server::Ledger& ledger, Member m, const shard_server::Holder& holder,
                std::uint64_t from, RunHistory::Entries& entries) {
  std::vector<history::Grant> grants;
  std::uint64_t end = holder.end;
  const auto add = [&](const std::vector<shard_server::Range>& ranges) {
    for (auto range = ranges.rbegin(); range != ranges.rend() && end > from; ++range) {
      const std::uint64_t size = std::min(range->at.size(), end - from);
      end -= size;
      grants.push_back({holder.generation,
                        ledger.phase().number,
                        ledger.phase().epoch,
                        m.worker,
                        end,
                        {range->at.to - size, range->at.to},
                        ledger.records()});
    }
  };
  add(holder.grants);
  add(holder.recent);
  for (auto grant = grants.rbegin(); grant != grants.rend(); ++grant) {
    entries.emplace_back(*grant);
  }
}

}  // namespace

// ------------------------------------------------------------------------ grants

std::optional<RunHistory::Holding> RunHistory::holding(const shard_server::Ledger& ledger,
                                                       const Membership& membership, Member m,
                                                       Generation g) const {
  if (external_ || g != steps_.generation()) return {};
  if (ledger.phase().kind != shard_server::PhaseKind::kTrain || !membership.contains(m)) {
    return {};
  }
  const auto found = ledger.holders().find(m.worker);
  if (found == ledger.holders().end() || found->second.generation != g) return {};
  return Holding{ledger.phase().number, found->second.end};
}

RunHistory::Entries RunHistory::changed(const shard_server::Ledger& ledger, Member m,
                                        const Holding& before) {
  const shard_server::Phase& phase = ledger.phase();
  const auto found = ledger.holders().find(m.worker);
  if (phase.number != before.phase || found == ledger.holders().end()) return {};
  const shard_server::Holder& holder = found->second;
  Entries entries;
  if (holder.end > before.end) add_grants(ledger, m, holder, before.end, entries);
  if (holder.end < before.end) {
    entries.emplace_back(history::Cut{holder.generation, phase.number, m.worker, holder.end});
  }
  return entries;
}

// ------------------------------------------------------------------------- steps

RunHistory::Steps RunHistory::hear(const wire::StepHistory& told, Step step) {
  auto fresh = steps_.hear(told, step);
  if (!fresh) {
    const bool said = std::exchange(refused_, true);
    return {{}, said ? "" : fresh.error().message};
  }
  Steps steps;
  for (wire::StepRun& run : *fresh) {
    steps.entries.emplace_back(history::Steps{told.generation, std::move(run)});
  }
  return steps;
}

history::Entry RunHistory::settled(const membership::SettleGeneration& settled, Lineage lineage) {
  history::Settled entry{lineage, settled.generation, settled.step, {}};
  for (const ExpectedMember& e : settled.members) entry.members.push_back(e.member.worker);
  steps_.begin(settled.generation, entry.members.size(), settled.step);
  return entry;
}

RunHistory::Entries RunHistory::resume(const shard_server::Ledger& ledger,
                                       const MembershipImage& group) {
  if (group.base == Generation{} || external_) return {};
  steps_.resume(group.base, group.base_members.size());
  if (ledger.phase().kind != shard_server::PhaseKind::kTrain) return {};
  Entries entries;
  for (const ExpectedMember& e : group.base_members) {
    const auto found = ledger.holders().find(e.member.worker);
    if (found == ledger.holders().end() || found->second.generation != group.base) continue;
    add_grants(ledger, e.member, found->second, 0, entries);
  }
  return entries;
}

std::optional<Step> RunHistory::kept_through(Generation generation) const {
  if (generation != steps_.generation()) return {};
  return steps_.kept_through();
}

// ------------------------------------------------------------------ measurements

void RunHistory::measured(Member m, const wire::Report& sum) {
  if (sum.batches == 0) return;
  shard_server::WorkerMoment& worker = moment_[m.worker];
  worker.member = m;
  worker.batches += sum.batches;
  worker.samples += sum.samples;
  worker.data_us += sum.data_us;
  worker.compute_us += sum.compute_us;
  worker.wait_us += sum.wait_us;
}

bool RunHistory::moment_is_over(MonoTime now, bool ends) const {
  return ends || now - moment_from_ >= kMoment;
}

RunHistory::Entries RunHistory::moment(const Standing& job, const wire::Plan& plan,
                                       const ClusterView& view, MonoTime now) {
  const Duration took = now - std::exchange(moment_from_, now);
  if (moment_.empty()) return {};
  history::Measured moment;
  // The first moment of an incarnation began with the incarnation.
  moment.seconds = std::min(to_seconds(took), job.seconds);
  moment.from_s = job.seconds - moment.seconds;
  moment.step = job.step;
  moment.samples_done = job.samples_done;
  moment.loss = job.loss;
  for (const wire::PlanEntry& entry : plan.entries) {
    const auto found = moment_.find(entry.worker);
    if (found == moment_.end()) continue;
    found->second.micro_batch = entry.micro_batch;
    found->second.accumulation = entry.accumulation;
  }
  for (const WorkerView& seen : view.workers) {
    const auto found = moment_.find(seen.member.worker);
    if (found == moment_.end() || seen.verdict.kind == VerdictKind::kNone) continue;
    found->second.verdict = to_string(seen.verdict.kind);
    if (seen.verdict.cause != Cause::kUnknown) found->second.cause = to_string(seen.verdict.cause);
    found->second.severity = seen.verdict.severity;
  }
  for (auto& [id, worker] : moment_) moment.workers.push_back(std::move(worker));
  moment_.clear();
  Entries entries;
  entries.emplace_back(std::move(moment));
  return entries;
}

}  // namespace antdt::ctl
