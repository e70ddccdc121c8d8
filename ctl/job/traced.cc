#include "ctl/job/traced.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/parts.h"

namespace antdt::ctl::job {

Traced::Traced(Parts& parts) : parts_(parts), ranks_(parts.config.hang_after) {}

void Traced::step(const trace::Input& input, Work& work) {
  trace::Effects effects;
  ranks_.step(input, work.now, effects);
  for (const trace::Effect& effect : effects) carry_out(effect, work);
}

void Traced::hear(Member member, const wire::Traced& said, Work& work) {
  if (parts_.config.spec.protocol != Protocol::kTorchrun) return;
  const auto known = ranks_.ranks().find(member.worker);
  const bool is_new = known == ranks_.ranks().end() || known->second.member != member ||
                      known->second.said.rank != said.rank;
  step(trace::RankSaid{member, said}, work);
  if (!is_new) return;
  show_to_monitor(work);
  parts_.injections.tell_newcomer(member, work);
}

void Traced::hear(Member member, const wire::StackTold& told, Work& work) {
  step(trace::StackHeard{member, told}, work);
}

void Traced::release(Member member, Work& work) {
  if (!ranks_.ranks().contains(member.worker)) return;
  step(trace::RankGone{member}, work);
}

void Traced::tick(Work& work) {
  if (any()) step(trace::TimePassed{}, work);
}

void Traced::show_to_monitor(Work& work) const {
  control::GroupObserved observed;
  for (const auto& [worker, rank] : ranks_.ranks()) {
    const WorkerProcess* process = parts_.lifecycle.find(worker);
    if (process == nullptr) continue;
    observed.members.push_back(
        parts_.members.info_of(rank.member, parts_.members.host_name(process->place.host)));
    observed.members.back().rank.reset();  // they are no ring of ours
  }
  work.then(std::move(observed));
}

void Traced::carry_out(const trace::Effect& effect, Work& work) {
  std::visit(Overloaded{
                 [&](const trace::AskForStacks& e) {
                   for (const Member m : e.members) work.send(m, {}, wire::StackWanted{e.number});
                 },
                 [&](const trace::SayHang& e) { say(e.hang, work); },
                 [&](const trace::SayHangOver&) {
                   if (hang_) hang_->over_at_s = parts_.lifecycle.seconds();
                   work.note("hang-over", "the ranks go on");
                 },
                 [&](const trace::EndRank& e) {
                   work.then(lifecycle::WorkerHung{e.member, e.why});
                 },
             },
             effect);
}

// The stacks go into the run's events, where they are found when all is over.
void Traced::say(const trace::Hang& hang, Work& work) {
  hang_ = Known{hang, parts_.lifecycle.seconds()};
  nlohmann::ordered_json stacks = nlohmann::ordered_json::object();
  for (const trace::Hang::Stack& s : hang.stacks) stacks[to_string(s.worker)] = s.stack;
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  work.note("hang", trace::told(hang), "\"stacks\":" + stacks.dump(-1, ' ', false, kReplace));
}

}  // namespace antdt::ctl::job
