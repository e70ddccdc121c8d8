#include "jobd/effect_runner.h"

#include <memory>
#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/overloaded.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

// How long to wait until the agents have received that the job is over.
constexpr Duration kLastMessages = std::chrono::milliseconds(200);

// After this message, an order that is still held back for the member is useless.
bool ends_order(const ctl::job::WorkerMessage& body) {
  return std::holds_alternative<wire::Abort>(body) || std::holds_alternative<wire::Leave>(body);
}

// A job that is done and broke its delivery promise has failed.
void judge_delivery(ctl::JobReport& last) {
  if (last.outcome->code != 0) return;
  if (is_kept(last.delivery, last.totals.repeated, last.totals.lost)) return;
  last.outcome->code = 4;
  last.outcome->exit_class = ctl::ExitClass::kDelivery;
  last.outcome->first_cause =
      fmt::format("records were repeated or lost, and the promise is {}; see antdt data audit",
                  to_string(last.delivery));
}

}  // namespace

void EffectRunner::carry_out(ctl::job::Effect& effect) {
  std::visit(Overloaded{
                 [&](const ctl::job::PersistRecord& o) { shell_.turns.append(o.kind, o.bytes); },
                 [&](ctl::job::SendToWorker& o) { send(o); },
                 [&](const ctl::lifecycle::StartWorker& o) { shell_.hosts.start(o); },
                 [&](const ctl::lifecycle::StopWorker& o) { shell_.hosts.stop(o); },
                 [&](const ctl::lifecycle::PrepareGang& o) { shell_.hosts.prepare(o); },
                 [&](const ctl::job::StoreCheckpoint& o) {
                   shell_.turns.after_commit([this, o] { shell_.checkpoints.store(o); });
                 },
                 [&](const ctl::job::FindCheckpoint& o) { shell_.checkpoints.find(o); },
                 [&](const ctl::job::RemoveUnfinished& o) {
                   shell_.checkpoints.remove_unfinished(o.up_to);
                 },
                 [&](const ctl::job::RememberEntry& o) { shell_.history.remember(o.entry); },
                 [&](const ctl::job::PublishNote& o) { publish(o); },
                 [&](const ctl::lifecycle::EndJob& o) { end(o); },
             },
             effect);
}

void EffectRunner::send(ctl::job::SendToWorker& o) {
  const std::optional<Route> route = shell_.outbox.route_to(o.to, shell_.machine.lifecycle());
  if (!route) return;
  if (ends_order(o.body)) shell_.checkpoints.drop_order(o.to);
  const Overloaded put{
      [&](const ctl::SharedRoster& roster) {
        shell_.outbox.send(*route, o.to, o.generation, roster.for_wire(), o.seq);
      },
      [&](const auto& body) { shell_.outbox.send(*route, o.to, o.generation, body, o.seq); }};
  std::visit(put, o.body);
  shell_.checkpoints.hold_until_there(o.to, route->endpoint, o.reads);
}

void EffectRunner::publish(const ctl::job::PublishNote& o) {
  const double time_s = shell_.machine.lifecycle().seconds();
  const auto say = [this, time_s, kind = o.kind, extra = o.extra_json](const std::string& text) {
    log_info("{}: {}", kind, text);
    const std::string event = shell_.events.add(time_s, kind, text, extra);
    if (shell_.hooks) shell_.hooks->offer(kind, event);
  };
  if (o.kind != "checkpoint-failed") return say(o.text);
  shell_.checkpoints.with_room([say, text = o.text](const std::string& about_room) {
    say(fmt::format("{} ({})", text, about_room));
  });
}

// The summary is written last, so when it exists all other files do.
void EffectRunner::end(const ctl::lifecycle::EndJob& o) {
  shell_.ended = true;
  if (shell_.own_program) shell_.own_program->end();
  if (shell_.hooks) shell_.hooks->job_ended();
  shell_.standbys.job_ended();
  shell_.tensorboard.job_ended();
  shell_.turns.finish();
  ctl::JobReport last = shell_.machine.report();
  last.state = state_after(o.outcome.state);
  last.outcome = o.outcome;
  judge_delivery(last);
  shell_.exit_code = last.outcome->code;
  shell_.checkpoints.conclude(o.outcome.state == JobEnd::kDone,
                              [this, last](std::vector<std::string> names) {
                                ctl::JobReport whole = last;
                                whole.checkpoints = std::move(names);
                                write_summary(whole);
                              });
}

void EffectRunner::write_summary(const ctl::JobReport& last) {
  const std::string text = ctl::summary_json(last);
  // Other hosts take the job for ended from then on, so the last checkpoint must be copied before.
  const auto leave = [this, text] {
    shell_.turns.keep_for_others(kSummaryFile, text);
    if (shell_.links) shell_.links->detach();
    shell_.loop.call_after(kLastMessages, [this] {
      if (!shell_.hooks) return shell_.loop.stop();
      shell_.hooks->when_done([this] { shell_.loop.stop(); });
    });
  };
  shell_.disks.records().run(
      "writing summary.json",
      [this, leave, path = fmt::format("{}/{}", shell_.options.run_dir, kSummaryFile), text] {
        const Status written = write_file_atomic(path, text);
        return [this, leave, written] {
          if (!written) log_error("{}", written.error().message);
          shell_.checkpoints.when_copied(leave);
        };
      });
}

}  // namespace antdt::jobd
