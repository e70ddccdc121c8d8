#include "jobd/job_daemon.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "core/log/log.h"
#include "core/wire/packet.h"
#include "jobd/seen_numbers.h"
#include "launcher/start/resume_request.h"

namespace antdt::jobd {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kLookForRoom = std::chrono::seconds(1);
// An agent says something every second.
constexpr Duration kSilence = std::chrono::milliseconds(2500);
constexpr Duration kSyncHistory = std::chrono::seconds(1);
// How long members may be kept waiting for the history of the generation before theirs to be
// safe: after that the steps of a second may be forgotten, and training goes on.
constexpr Duration kHistoryPatience = std::chrono::seconds(2);
// Between two signs of life while the journal is waited for.
constexpr Duration kSignOfLife = std::chrono::milliseconds(500);

// Everything that the files of a run tell of the numbers it has used.
SeenNumbers all_seen(const std::string& run_dir, const launcher::JobConfig& config,
                     const shard_server::LedgerConfig& ledger_config) {
  SeenNumbers seen = seen_in(run_dir);
  const CheckpointStore::Newest newest = CheckpointStore(run_dir, config.checkpoint.keep).newest();
  const auto ledger = shard_server::Ledger::restore(ledger_config, newest.found.ledger_image);
  if (ledger) seen.in_ledger(*ledger);
  return seen;
}

struct OpenedJournal {
  shard_server::Journal journal;
  shard_server::JournalContent content;
  bool begins_again = false;  // it is new, the run is not
};

// `from_checkpoint`: where the journal was put aside, what the run would remember
// without it comes in its place.
Result<OpenedJournal> open_journal(const std::string& path, bool from_checkpoint,
                                   const std::string& run_dir, const launcher::JobConfig& config,
                                   const shard_server::LedgerConfig& ledger_config) {
  SeenNumbers seen;
  shard_server::JournalOptions options;
  if (from_checkpoint) {
    seen = all_seen(run_dir, config, ledger_config);
    options.first_incarnation = incarnation_above(seen);
  }
  shard_server::JournalContent content;
  ANTDT_TRY(auto journal, shard_server::Journal::open(path, content, options));
  // An earlier incarnation may have begun the new journal already.
  const bool is_new = content.snapshot.empty() && content.records.empty();
  if (from_checkpoint && is_new) {
    const ctl::JobImage image =
        image_above(seen, config.roles.worker.count, config.roles.server.processes());
    content.records.push_back({std::string(ctl::kImageRecord), wire::encode(image)});
  }
  return OpenedJournal{std::move(journal), std::move(content), from_checkpoint && is_new};
}

}  // namespace

Result<std::unique_ptr<JobDaemon>> JobDaemon::open(EventLoop& loop, const Clock& clock,
                                                   transport::Context& context, Options options) {
  ANTDT_TRY(FileLock lock, FileLock::acquire(options.run_dir + "/jobd.lock"));
  ANTDT_TRY(launcher::JobConfig config, launcher::load_effective(options.run_dir));
  ANTDT_TRY(const DataFound data, load_data_found(options.run_dir));
  ANTDT_TRY(const auto request, launcher::read_resume_request(options.run_dir));
  ANTDT_TRY(ctl::JobMachineConfig machine_cfg, machine_config(config, data));
  machine_cfg.ledger.run = options.run_dir;
  ANTDT_TRY(machine_cfg.secret, crypto::Secret::random());
  ANTDT_TRY(OpenedJournal opened,
            open_journal(options.state_dir + "/state.db", request && request->from_checkpoint,
                         options.run_dir, config, machine_cfg.ledger));
  machine_cfg.incarnation = opened.journal.incarnation();
  HistoryKeeper history(options.state_dir + "/history.db", machine_cfg.ledger.train,
                        opened.journal.incarnation(), config.logs.history_bytes);
  ANTDT_TRY(auto solution, ctl::make_solution(config.control.solution));
  ANTDT_TRY(ctl::JobMachine machine,
            ctl::JobMachine::open(std::move(machine_cfg), std::move(solution), opened.content));
  std::unique_ptr<JobDaemon> daemon(
      new JobDaemon(loop, clock, std::move(options), std::move(config), std::move(lock),
                    std::move(opened.journal), std::move(history), std::move(machine)));
  daemon->start_own_program();
  ANTDT_TRY(daemon->skips_, launcher::read_skips(daemon->options_.run_dir));
  ANTDT_RETURN_IF_ERROR(daemon->listen(context));
  ANTDT_RETURN_IF_ERROR(daemon->begin(request, opened.begins_again));
  ANTDT_RETURN_IF_ERROR(daemon->dial_agents(context));
  return daemon;
}

JobDaemon::JobDaemon(EventLoop& loop, const Clock& clock, Options options,
                     launcher::JobConfig config, FileLock lock, shard_server::Journal journal,
                     HistoryKeeper history, ctl::JobMachine machine)
    : loop_(loop),
      options_(std::move(options)),
      config_(std::move(config)),
      config_json_(launcher::to_json(config_)),
      lock_(std::move(lock)),
      journal_(std::move(journal)),
      machine_(std::move(machine)),
      disks_(loop_, clock, options_.run_dir, options_.state_dir),
      events_(options_.run_dir + "/events.jsonl", disks_.records()),
      history_(disks_.history(), std::move(history),
               [this](const std::string& text) {
                 perform(ctl::job::PublishNote{"history", text, ""});
               }),
      checkpoints_(options_.run_dir, config_.checkpoint.keep,
                   [this] { disks_.checkpoints().progress(); }) {
  open_copies();
  loop_.at_turn_end([this] { finish_turn(); });
  loop_.call_after(kTick, [this] { tick(); });
  loop_.call_after(machine_.control_interval(), [this] { control_tick(); });
}

Status JobDaemon::listen(transport::Context& context) {
  ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, options_.socket_dir + "/jobd.sock"));
  socket_.emplace(std::move(socket));
  loop_.watch_socket(*socket_, [this] { receive_direct(); });
  return {};
}

// `antdt run --resume` leaves a request in the run directory: it is for one
// incarnation, and gone once that one has written it down. `begins_again`: the
// journal is new, the run is not.
Status JobDaemon::begin(const std::optional<launcher::ResumeRequest>& request, bool begins_again) {
  perform(ctl::job::PublishNote{
      "start", fmt::format("job {} (incarnation {})", config_.job.id, journal_.incarnation()),
      fmt::format(R"("incarnation":{})", journal_.incarnation())});
  list_checkpoints();
  if (!machine_.known() || begins_again) feed(ctl::job::JobCreated{});
  if (machine_.known() && !request) feed(ctl::job::IncarnationRecovered{});
  if (!request) return {};
  const char* how = request->from_checkpoint ? ", from a checkpoint, with a new journal" : "";
  const std::string changes =
      request->changes.empty() ? "" : fmt::format("; changed {}", request->changes);
  feed(ctl::job::OperatorAsked{"resume",
                               fmt::format("asked by {}{}{}", request->who, how, changes)});
  if (machine_.known()) feed(ctl::job::ResumeOrdered{});
  finish_turn();
  return launcher::remove_resume_request(options_.run_dir);
}

void JobDaemon::feed(const ctl::job::Input& input) {
  ctl::job::Effects outputs;
  machine_.step(input, loop_.now(), outputs);
  for (ctl::job::Effect& output : outputs) {
    std::visit([this](auto& o) { perform(o); }, output);
  }
}

void JobDaemon::stop_job(const std::string& reason, Duration grace) {
  feed(ctl::lifecycle::StopRequested{reason, grace});
}

void JobDaemon::tick() {
  loop_.call_after(kTick, [this] { tick(); });
  if (ended_) return;
  repeat_requests();
  go_on_if_there_is_room();
  if (own_program_) own_program_->tick();
  look_at_disks();
  sync_history();
  send_what_may_be();
  for (const std::string& host : links_->silent(kSilence)) feed(ctl::job::HostFellSilent{host});
  feed(ctl::job::TickPassed{});
}

// What operators let the job go on without, where this lineage does not know it
// yet: the run was resumed, or went back to a checkpoint from before.
void JobDaemon::declare_skips() {
  const auto& open = machine_.ledger().phase();
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return;
  const std::uint64_t lineage = machine_.membership().lineage().value;
  for (launcher::Skip& skip : skips_) {
    if (skip.epoch != open.epoch.value || skip.lineage >= lineage) continue;
    feed(ctl::job::SkipOrdered{{skip.from, skip.to, skip.reason, skip.who}});
    skip.lineage = lineage;
    skips_changed_ = true;
  }
}

// After they are durable: declared and not kept is declared again, which does no
// harm; kept and not declared would be lost, and an incarnation that was
// succeeded must not write here. Before whoever asked is told.
void JobDaemon::keep_skips() {
  if (!skips_changed_) {
    std::ranges::move(std::exchange(skip_answers_, {}), std::back_inserter(outbox_));
    return;
  }
  skips_changed_ = false;
  const auto answers = std::make_shared<std::vector<Outgoing>>(std::exchange(skip_answers_, {}));
  disks_.records().run("writing skips.json",
                       [this, answers, skips = skips_, run_dir = options_.run_dir] {
                         const Status kept = launcher::write_skips(run_dir, skips);
                         return [this, answers, kept] {
                           if (!kept) log_warn("{}", kept.error().message);
                           std::ranges::move(*answers, std::back_inserter(outbox_));
                         };
                       });
}

void JobDaemon::control_tick() {
  loop_.call_after(machine_.control_interval(), [this] { control_tick(); });
  if (ended_) return;
  feed(ctl::job::ControlTickPassed{});
  const ctl::ClusterView* view = own_program_ ? machine_.view_to_decide(loop_.now()) : nullptr;
  if (view != nullptr) own_program_->offer(*view, machine_.lifecycle().seconds());
}

void JobDaemon::start_own_program() {
  if (config_.control.solution != "command") return;
  const auto log =
      std::make_shared<RotatingFile>(options_.run_dir + "/solution.log", OwnProgram::kLogBytes);
  OwnProgram::Options own{
      config_.control.command, config_.job.directory, [this, log](const std::string& words) {
        std::ignore = disks_.records().offer("writing solution.log", [log, words] {
          if (const Status written = log->append(words); !written) {
            log_warn("{}", written.error().message);
          }
          return DiskThread::Then();
        });
      }};
  own_program_ = std::make_unique<OwnProgram>(
      loop_, std::move(own),
      [this](ctl::Decision decision, PlanVersion plan) {
        if (!ended_) feed(ctl::job::ProgramDecided{std::move(decision), plan});
      },
      [this](const std::string& text) {
        perform(ctl::job::PublishNote{
            "solution",
            fmt::format("{}; until then nobody decides and the job goes on with the plan that it "
                        "has; what the program wrote is in {}/solution.log",
                        text, options_.run_dir),
            ""});
      });
}

ctl::JobReport JobDaemon::report() const {
  ctl::JobReport report = machine_.report();
  if (own_program_) report.solution_trouble = own_program_->trouble();
  report.disk_trouble = disks_.trouble();
  return report;
}

// The journal has used its ballast. What is written from now on must be little:
// requests for records are left unanswered (workers repeat them, and train on
// what they hold), until the ballast is back.
void JobDaemon::pause_if_disk_is_full() {
  if (paused_ || !journal_.low_on_space()) return;
  paused_ = loop_.now();
  feed(ctl::job::PauseChanged{true});
  perform(ctl::job::PublishNote{
      "paused",
      fmt::format("the disk of {}/state.db is full: make room for {} MiB there; the job waits and "
                  "goes on by itself",
                  options_.state_dir, shard_server::JournalOptions{}.ballast_bytes >> 20),
      ""});
}

void JobDaemon::go_on_if_there_is_room() {
  if (!paused_ || loop_.now() - *paused_ < kLookForRoom) return;
  paused_ = loop_.now();
  if (!on_journal("reserving room for the journal",
                  [this] { return journal_.restore_ballast(); })) {
    return;
  }
  paused_.reset();
  feed(ctl::job::PauseChanged{false});
  perform(
      ctl::job::PublishNote{"continued", "there is room on the disk again; the job goes on", ""});
}

// Members may forget the steps that are safe.
void JobDaemon::sync_history() {
  if (loop_.now() - history_asked_ < kSyncHistory) return;
  history_asked_ = loop_.now();
  history_.sync([this, told = machine_.history_mark()](bool kept) {
    if (kept) feed(ctl::job::HistoryKept{told});
  });
}

void JobDaemon::look_at_disks() {
  const auto news = disks_.take_news();
  if (news) perform(ctl::job::PublishNote{news->kind, news->text, ""});
}

// ------------------------------------------------------------------- the turn's end

void JobDaemon::finish_turn() {
  if (!ended_) declare_skips();  // a phase may have been opened: before anybody is granted of it
  if (const auto image = machine_.image_if_changed()) journal_.append(ctl::kImageRecord, *image);
  history_.finish_turn();
  if (const Status committed = commit_turn(); !committed) {
    // Nothing of this turn may be seen by anybody. The agent starts us again
    // and the journal says where we were.
    log_error("the journal cannot be written: {}", committed.error().message);
    if (options_.before_abort) options_.before_abort();
    std::abort();
  }
  keep_skips();
  pause_if_disk_is_full();
  send_turn();
}

Status JobDaemon::commit_turn() {
  if (!journal_.dirty()) return {};
  return on_journal("committing the journal", [this]() -> Status {
    ANTDT_RETURN_IF_ERROR(journal_.commit());
    return journal_.wants_snapshot() ? journal_.snapshot(machine_.snapshot()) : Status();
  });
}

// The loop's clock stands still meanwhile: nobody is late, or silent, because we are.
Status JobDaemon::on_journal(const char* what, const std::function<Status()>& work) {
  Status done;
  disks_.journal().run(what, [&done, &work] {
    done = work();
    return DiskThread::Then();
  });
  while (!disks_.journal().await_idle(kSignOfLife)) wait_for_journal();
  return done;
}

void JobDaemon::wait_for_journal() {
  if (links_) links_->heartbeat();
  look_at_disks();
  receive_status_alone();
}

// Members of a generation that settled forget the one before: what they told of it is to be safe
// when they hear so. What later turns say goes after it.
void JobDaemon::send_turn() {
  Turn turn{std::exchange(outbox_, {}), history_.take_settled(), {}};
  if (turn.waits_for_history) {
    turn.at_most_until = loop_.now() + kHistoryPatience;
    const std::size_t behind = turns_.size();
    turns_.push_back(std::move(turn));
    history_.sync([this, number = first_turn_ + behind](bool) {
      if (number >= first_turn_) turns_.at(number - first_turn_).waits_for_history = false;
    });
    history_.finish_turn();
  } else if (!turn.outbox.empty()) {
    turns_.push_back(std::move(turn));
  }
  send_what_may_be();
}

void JobDaemon::send_what_may_be() {
  while (!turns_.empty()) {
    Turn& turn = turns_.front();
    if (turn.waits_for_history && loop_.now() < turn.at_most_until) return;
    for (Outgoing& out : turn.outbox) send_now(out);
    turns_.pop_front();
    ++first_turn_;
  }
}

void JobDaemon::send_now(Outgoing& out) {
  if (out.route.peer.empty()) {
    links_->send(out.route.endpoint, out.packet);
  } else {
    out.packet.peer = std::move(out.route.peer);
    std::ignore = socket_->send(out.packet);
  }
}

}  // namespace antdt::jobd
