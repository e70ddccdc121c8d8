// What the run's history is told: who was granted which part of the stream, and
// how many records of each member every step took. Of collectives alone: a loose
// client has no steps, and its path pays nothing for this.
#include <algorithm>

#include "ctl/job/job_machine.h"

namespace antdt::ctl {
namespace history = shard_server::history;

// What a member of the settled collective has in its hand; nothing for others.
std::optional<JobMachine::Hand> JobMachine::collective_hand(Member m, Generation g) const {
  if (config_.spec.external || g != steps_.generation()) return {};
  if (ledger_.phase().kind != shard_server::PhaseKind::kTrain || !membership_.contains(m)) {
    return {};
  }
  const auto found = ledger_.holders().find(m.worker);
  if (found == ledger_.holders().end() || found->second.generation != g) return {};
  return Hand{ledger_.phase().number, found->second.end};
}

void JobMachine::remember_change(Member m, const Hand& before) {
  const shard_server::Phase& phase = ledger_.phase();
  const auto found = ledger_.holders().find(m.worker);
  if (phase.number != before.phase || found == ledger_.holders().end()) return;
  const shard_server::Holder& holder = found->second;
  if (holder.end > before.end) remember_grants(m, holder, before.end);
  if (holder.end < before.end) {
    out_->emplace_back(
        out::Remember{history::Cut{holder.generation, phase.number, m.worker, holder.end}});
  }
}

// The grants of a holder from place `from` on, in its order; those that are
// committed already as far as the ledger still has them.
void JobMachine::remember_grants(Member m, const shard_server::Holder& holder, std::uint64_t from) {
  std::vector<history::Grant> grants;
  std::uint64_t end = holder.end;
  const auto add = [&](const std::vector<shard_server::Range>& ranges) {
    for (auto range = ranges.rbegin(); range != ranges.rend() && end > from; ++range) {
      const std::uint64_t size = std::min(range->at.size(), end - from);
      end -= size;
      grants.push_back({holder.generation,
                        ledger_.phase().number,
                        ledger_.phase().epoch,
                        m.worker,
                        end,
                        {range->at.to - size, range->at.to}});
    }
  };
  add(holder.grants);
  add(holder.recent);
  for (auto grant = grants.rbegin(); grant != grants.rend(); ++grant) {
    out_->emplace_back(out::Remember{*grant});
  }
}

void JobMachine::remember_steps(const wire::StepHistory& told, Step step) {
  auto fresh = steps_.hear(told, step);
  if (!fresh) {
    if (!history_refused_) note("history", fresh.error().message);
    history_refused_ = true;
    return;
  }
  for (wire::StepRun& run : *fresh) {
    out_->emplace_back(out::Remember{history::Steps{told.generation, std::move(run)}});
  }
}

void JobMachine::remember_settled(const Settled& settled) {
  history::Settled entry{membership_.lineage(), settled.generation, settled.step, {}};
  for (const ExpectedMember& e : settled.members) entry.members.push_back(e.member.worker);
  steps_.begin(settled.generation, entry.members.size(), settled.step);
  out_->emplace_back(out::Remember{std::move(entry)});
}

// A power failure takes what was not synced. The ledger has the latest grants, and
// the members tell the steps again; the rest was synced long ago.
void JobMachine::remember_again() {
  const MembershipImage group = membership_.image();
  if (group.base == Generation{} || config_.spec.external) return;
  steps_.resume(group.base, group.base_members.size());
  if (ledger_.phase().kind != shard_server::PhaseKind::kTrain) return;
  for (const ExpectedMember& e : group.base_members) {
    const auto found = ledger_.holders().find(e.member.worker);
    if (found == ledger_.holders().end() || found->second.generation != group.base) continue;
    remember_grants(e.member, found->second, 0);
  }
}

void JobMachine::on(const in::HistoryKept& e) { steps_.kept(e.told); }

}  // namespace antdt::ctl
