#include "ctl/job/subjects/watching.h"

#include <vector>

#include "ctl/job/parts.h"
#include "ctl/job/reporter.h"

namespace antdt::ctl::job {

void Watching::on(const TimePassed& /*e*/, Work& work) {
  work.then(lifecycle::TimePassed{});
  parts_.group.tick(work);
  parts_.traced.tick(work);
  look_at_pins(work);
  work.then(VitalsDue{});
  work.then(DeadlinesDue{});
}

void Watching::look_at_pins(Work& work) {
  if (parts_.config.pins.empty() || parts_.ended || parts_.lifecycle.outcome()) return;
  const shard_server::Ledger& ledger = parts_.records.ledger();
  const auto domains = pinned_domains(ledger);
  const auto text =
      parts_.pins.look(domains, ledger.phase().epoch, parts_.config.ledger.run, work.now);
  if (text) work.note("domain-waits", *text);
  if (parts_.pins.changes(all_wait(domains))) expect_steps(work);
}

void Watching::on(const VitalsDue& /*e*/, Work& work) {
  for (const Vitals::Finding& finding : parts_.vitals.check(work.now)) {
    if (const auto* hung = std::get_if<HungMember>(&finding)) {
      work.then(lifecycle::WorkerHung{hung->member, hung->why});
    } else {
      parts_.group.stuck(std::get<StuckCollective>(finding).why, work);
    }
  }
}

void Watching::on(const DeadlinesDue& /*e*/, Work& work) {
  parts_.checkpoints.look_at_begun(work);
  remember_moment(false, work);
  parts_.phases.repeat_finish(work);
  parts_.hosts.look(work);
  parts_.operators.move_drained_servers(work);
}

void Watching::on(const PauseChanged& e, Work& work) {
  paused_ = e.on;
  expect_steps(work);
}

// No steps are expected in four cases: while the journal has no room, because nobody gets records
// then; while one member writes the model at the end and the others wait, however long that takes;
// during the last checkpoint of a group of servers; and while all records that are left are pinned
// to domains without workers.
void Watching::expect_steps(const Work& work) {
  const bool none = paused_ || all_wait(pinned_domains(parts_.records.ledger())) ||
                    !parts_.group.whole() || parts_.group.closing() ||
                    parts_.lifecycle.phase().what == wire::PhaseKind::kFinish;
  parts_.vitals.expect_steps(none ? std::vector<Member>{} : parts_.group.members(), work.now);
}

void Watching::remember_moment(bool ends, Work& work) {
  if (!parts_.history.moment_is_over(work.now, ends)) return;
  const ProgressView& progress = parts_.series.progress();
  const RunHistory::Standing stands{parts_.lifecycle.seconds(), progress.step(),
                                    samples_done(parts_), progress.recent_loss().value_or(0)};
  work.remember(
      parts_.history.moment(stands, parts_.controller.plan(), parts_.controller.view(), work.now));
}

}  // namespace antdt::ctl::job
