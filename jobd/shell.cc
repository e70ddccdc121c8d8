#include "jobd/shell.h"

#include <tuple>
#include <utility>

#include "jobd/disk/run_journal.h"

namespace antdt::jobd {

Shell::Shell(EventLoop& the_loop, const Clock& clock, Options the_options,
             launcher::JobConfig the_config, FileLock the_lock, shard_server::Journal journal,
             std::optional<RunFileSeal> the_seal, HistoryKeeper keeper_of_history,
             ctl::JobMachine the_machine)
    : loop(the_loop),
      options(std::move(the_options)),
      config(std::move(the_config)),
      config_json(launcher::to_json(config)),
      lock(std::move(the_lock)),
      seal(std::move(the_seal)),
      machine(std::move(the_machine)),
      disks(loop, clock, options.run_dir, options.state_dir,
            RunJournal(config, options.run_dir, options.state_dir).place()),
      events(options.run_dir + "/events.jsonl", disks.records()),
      history(disks.history(), std::move(keeper_of_history),
              [this](const std::string& text) { note("history", text); }),
      outbox(config.job.id),
      turns(*this, clock, std::move(journal)),
      skips(*this),
      checkpoints(*this, clock),
      standbys(*this),
      hosts(*this),
      operators(*this),
      inbox(*this),
      runner(*this),
      metrics(*this),
      tensorboard(*this) {
  if (!config.hooks.event.empty()) hooks.emplace(*this);
}

void Shell::feed(const ctl::job::Input& input) {
  ctl::job::Effects effects;
  machine.step(input, loop.now(), effects);
  for (ctl::job::Effect& effect : effects) runner.carry_out(effect);
}

void Shell::note(const std::string& kind, const std::string& text, const std::string& extra_json) {
  runner.publish({kind, text, extra_json});
}

ctl::JobReport Shell::report() const {
  ctl::JobReport report = machine.report();
  if (own_program) report.solution_trouble = own_program->trouble();
  report.disk_trouble = turns.pause().paused() ? turns.no_room() : disks.trouble();
  hosts.add_devices(report);
  if (std::string text = checkpoints.copying(); !text.empty()) report.waiting_for = std::move(text);
  return report;
}

void Shell::look_at_disks() {
  if (const auto news = disks.take_news()) note(news->kind, news->text);
}

// A run that is resumed sends before its agents are dialled, to processes of which none is left.
// Requests to agents are repeated, and orders to processes that join again.
void Shell::send_now(Outgoing& out) {
  if (out.route.peer.empty()) {
    if (links) links->send(out.route.endpoint, out.packet);
  } else {
    out.packet.peer = std::move(out.route.peer);
    std::ignore = socket->send(out.packet);
  }
}

}  // namespace antdt::jobd
