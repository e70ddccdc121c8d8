#include "jobd/job_daemon.h"

#include <tuple>
#include <utility>

#include "core/log/log.h"
#include "core/wire/packet.h"
#include "ctl/job/daemon_pace.h"
#include "jobd/disk/run_journal.h"
#include "jobd/disk/seen_numbers.h"
#include "jobd/programs/job_spec.h"
#include "jobd/standby/run_files.h"

namespace antdt::jobd {
namespace {

// All numbers that the files of a run show.
Result<SeenNumbers> all_seen(const std::string& run_dir, const launcher::JobConfig& config,
                             const shard_server::LedgerConfig& ledger_config) {
  SeenNumbers seen = seen_in(run_dir);
  ANTDT_TRY(const auto newest, CheckpointStore(run_dir, config.checkpoint.keep).newest());
  if (newest.none() && !newest.unreadable.empty()) {
    return fail(ErrorKind::kIo, "{}", newest.unreadable.front());
  }
  const auto ledger = shard_server::Ledger::restore(ledger_config, newest.found.ledger_image);
  if (ledger) seen.in_ledger(*ledger);
  return seen;
}

struct OpenedJournal {
  shard_server::Journal journal;
  shard_server::JournalContent content;
  bool begins_again = false;  // the journal is new, but the run is not
};

// `from_checkpoint`: the old journal was put aside, and the new one begins with what can be found
// without it.
Result<OpenedJournal> open_journal(const RunJournal& run_journal, const FileLock& lock,
                                   bool is_standby, bool from_checkpoint,
                                   const std::string& run_dir, const launcher::JobConfig& config,
                                   const shard_server::LedgerConfig& ledger_config) {
  SeenNumbers seen;
  Incarnation first{1};
  if (from_checkpoint) {
    ANTDT_TRY(seen, all_seen(run_dir, config, ledger_config));
    first = incarnation_above(seen);
  }
  shard_server::JournalContent content;
  ANTDT_TRY(auto store, run_journal.open(first, lock, is_standby));
  ANTDT_TRY(auto journal, shard_server::Journal::open(std::move(store), content));
  // An earlier incarnation may have begun the new journal already.
  const bool is_new = content.snapshot.empty() && content.records.empty();
  if (from_checkpoint && is_new) {
    const ctl::JobImage image =
        image_above(seen, config.roles.worker.count, config.roles.server.processes());
    content.records.push_back({std::string(ctl::kImageRecord), wire::encode(image)});
  }
  return OpenedJournal{std::move(journal), std::move(content), from_checkpoint && is_new};
}

// Where hosts share the run directory, a file server may keep the lock of a lost host for minutes.
// So a job daemon that stood by has a lock of its own; the lease says which of them has the job.
std::string lock_path(const Options& options) {
  if (!options.standby) return options.run_dir + "/jobd.lock";
  return fmt::format("{}/jobd.{}{}.lock", options.run_dir, ctl::standby::kStandby,
                     *options.standby);
}

// Seals the files of the run that other hosts read from the journal; none if there are no others.
Result<std::optional<RunFileSeal>> seal_for_others(const launcher::ClusterSection& cluster,
                                                   const std::string& journal_name) {
  if (cluster.store.empty() || cluster.hosts.empty()) return std::nullopt;
  ANTDT_TRY(const transport::KeyPair key, transport::load_key_pair(cluster.keys + "/job.key"));
  return RunFileSeal(key, journal_name);
}

// What a job daemon on another host needs to go on with the job.
Status keep_files(const RunFileSeal& seal, shard_server::Journal& journal,
                  const std::string& run_dir) {
  for (const char* name : {"job.json", "data.json"}) {
    ANTDT_TRY(const std::string bytes, read_file(fmt::format("{}/{}", run_dir, name)));
    ANTDT_TRY(const std::string sealed, seal.seal(name, bytes));
    ANTDT_RETURN_IF_ERROR(journal.keep_file(name, sealed));
  }
  // The summary of an earlier end is not that of this incarnation.
  ANTDT_TRY(const std::string none, seal.seal(kSummaryFile, ""));
  return journal.keep_file(kSummaryFile, none);
}

}  // namespace

Result<std::unique_ptr<JobDaemon>> JobDaemon::open(EventLoop& loop, const Clock& clock,
                                                   transport::Context& context, Options options) {
  ANTDT_TRY(FileLock lock, FileLock::acquire(lock_path(options)));
  ANTDT_TRY(launcher::JobConfig config, launcher::load_effective(options.run_dir));
  ANTDT_TRY(const DataFound data, load_data_found(options.run_dir));
  config.pins = data.pins;
  ANTDT_TRY(const auto request, launcher::read_resume_request(options.run_dir));
  ANTDT_TRY(ctl::JobMachineConfig machine_cfg, machine_config(config, data));
  machine_cfg.ledger.run = options.run_dir;
  ANTDT_TRY(machine_cfg.secret, crypto::Secret::random());
  const RunJournal run_journal(config, options.run_dir, options.state_dir);
  ANTDT_TRY(OpenedJournal opened, open_journal(run_journal, lock, options.standby.has_value(),
                                               request && request->from_checkpoint, options.run_dir,
                                               config, machine_cfg.ledger));
  machine_cfg.incarnation = opened.journal.incarnation();
  ANTDT_TRY(auto seal, seal_for_others(config.cluster, run_journal.name_in_etcd()));
  if (seal) {
    ANTDT_RETURN_IF_ERROR(keep_files(*seal, opened.journal, options.run_dir));
  }
  HistoryKeeper history(options.state_dir + "/history.db", machine_cfg.ledger.train,
                        opened.journal.incarnation(), config.logs.history_bytes);
  ANTDT_TRY(auto solution, ctl::make_solution(config.control.solution, visit_rules(config)));
  ANTDT_TRY(ctl::JobMachine machine,
            ctl::JobMachine::open(std::move(machine_cfg), std::move(solution), opened.content));
  auto shell = std::make_unique<Shell>(loop, clock, std::move(options), std::move(config),
                                       std::move(lock), std::move(opened.journal), std::move(seal),
                                       std::move(history), std::move(machine));
  std::unique_ptr<JobDaemon> daemon(new JobDaemon(std::move(shell)));
  ANTDT_RETURN_IF_ERROR(daemon->shell_->metrics.listen());
  daemon->start_own_program();
  ANTDT_RETURN_IF_ERROR(daemon->shell_->skips.read(opened.content));
  ANTDT_RETURN_IF_ERROR(daemon->shell_->inbox.listen(context));
  ANTDT_RETURN_IF_ERROR(daemon->begin(request, opened.begins_again));
  ANTDT_RETURN_IF_ERROR(daemon->shell_->hosts.dial_agents(context));
  return daemon;
}

JobDaemon::JobDaemon(std::unique_ptr<Shell> shell) : shell_(std::move(shell)) {
  shell_->loop.at_turn_end([this] { shell_->turns.finish(); });
  shell_->loop.call_after(ctl::job::kTick, [this] { tick(); });
  shell_->loop.call_after(shell_->machine.control_interval(), [this] { control_tick(); });
}

// `antdt run --resume` leaves a request in the run directory. It is for one incarnation, which
// removes it after journaling it. `begins_again`: the journal is new, but the run is not.
Status JobDaemon::begin(const std::optional<launcher::ResumeRequest>& request, bool begins_again) {
  Shell& shell = *shell_;
  const bool known = shell.machine.known();
  const Incarnation incarnation = shell.turns.incarnation();
  shell.note("start", fmt::format("job {} (incarnation {})", shell.config.job.id, incarnation),
             fmt::format(R"("incarnation":{})", incarnation));
  if (shell.options.standby) {
    shell.note("taken-over", "the job daemon that stood by on this host goes on with the job");
  }
  shell.checkpoints.list();
  if (!known || begins_again) shell.feed(ctl::job::JobCreated{});
  if (known && !request) shell.feed(ctl::job::IncarnationRecovered{});
  if (!request) return {};
  const char* how = request->from_checkpoint ? ", from a checkpoint, with a new journal" : "";
  const std::string changes =
      request->changes.empty() ? "" : fmt::format("; changed {}", request->changes);
  shell.feed(ctl::job::OperatorAsked{"resume",
                                     fmt::format("asked by {}{}{}", request->who, how, changes)});
  if (known) shell.feed(ctl::job::ResumeOrdered{});
  shell.turns.finish();
  return launcher::remove_resume_request(shell.options.run_dir);
}

void JobDaemon::tick() {
  Shell& shell = *shell_;
  shell.loop.call_after(ctl::job::kTick, [this] { tick(); });
  if (shell.hooks) shell.hooks->tick();
  if (shell.ended) return;
  shell.metrics.tick();
  shell.tensorboard.tick();
  shell.hosts.repeat_requests();
  shell.standbys.tick();
  shell.turns.go_on_if_there_is_room();
  if (shell.own_program) shell.own_program->tick();
  shell.look_at_disks();
  shell.turns.sync_history();
  shell.turns.send_due();
  shell.hosts.look_at_silence();
  shell.feed(ctl::job::TimePassed{});
}

void JobDaemon::control_tick() {
  Shell& shell = *shell_;
  shell.loop.call_after(shell.machine.control_interval(), [this] { control_tick(); });
  if (shell.ended) return;
  shell.feed(ctl::job::ControlTickPassed{});
  const ctl::ClusterView* view =
      shell.own_program ? shell.machine.view_to_decide(shell.loop.now()) : nullptr;
  if (view != nullptr) shell.own_program->offer(*view, shell.machine.lifecycle().seconds());
}

void JobDaemon::start_own_program() {
  Shell& shell = *shell_;
  if (shell.config.control.solution != "command") return;
  const auto log = std::make_shared<RotatingFile>(shell.options.run_dir + "/solution.log",
                                                  OwnProgram::kLogBytes);
  OwnProgram::Options own{shell.config.control.command, shell.config.job.directory,
                          [&shell, log](const std::string& words) {
                            std::ignore =
                                shell.disks.records().offer("writing solution.log", [log, words] {
                                  if (const Status written = log->append(words); !written) {
                                    log_warn("{}", written.error().message);
                                  }
                                  return DiskThread::Then();
                                });
                          }};
  shell.own_program = std::make_unique<OwnProgram>(
      shell.loop, std::move(own),
      [&shell](ctl::Decision decision, PlanVersion plan) {
        if (!shell.ended) shell.feed(ctl::job::DecisionReceived{std::move(decision), plan});
      },
      [&shell](const std::string& text) {
        shell.note("solution",
                   fmt::format("{}; until then nobody decides and the job goes on with the plan "
                               "that it has; what the program wrote is in {}/solution.log",
                               text, shell.options.run_dir));
      });
}

}  // namespace antdt::jobd
