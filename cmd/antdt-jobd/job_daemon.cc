#include "cmd/antdt-jobd/job_daemon.h"

#include <algorithm>

#include "core/log.h"
#include "core/permutation.h"
#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);

std::uint64_t key_of(const launcher::JobConfig& config) {
  std::uint64_t key = config.job.seed;
  for (const char c : config.job.id) key = combine_seed(key, static_cast<unsigned char>(c));
  return key;
}

std::string verdict_text(const ctl::Verdict& verdict) {
  if (verdict.kind == ctl::VerdictKind::kNone) return "ok";
  const bool leader = verdict.kind == ctl::VerdictKind::kLeader;
  return fmt::format("{} {:.1f}x {} ({})", ctl::to_string(verdict.kind),
                     leader ? 1 / verdict.severity : verdict.severity, leader ? "faster" : "slower",
                     ctl::to_string(verdict.cause));
}

std::string_view state_text(std::uint8_t state) {
  switch (state) {
    case ctl::WorkerProcess::kPlanned:
      return "planned";
    case ctl::WorkerProcess::kStarted:
      return "started";
    case ctl::WorkerProcess::kJoined:
      return "joined";
    default:
      return "exited";
  }
}

}  // namespace

Result<std::unique_ptr<JobDaemon>> JobDaemon::open(EventLoop& loop, transport::Context& context,
                                                   Options options) {
  ANTDT_TRY(FileLock lock, FileLock::acquire(options.run_dir + "/jobd.lock"));
  ANTDT_TRY(launcher::JobConfig config, launcher::load_effective(options.run_dir));
  ANTDT_TRY(const DataFound data, load_data_found(options.run_dir));
  ANTDT_TRY(const ctl::JobSpec spec, job_spec(config, data));
  ANTDT_TRY(ctl::ControllerConfig control, controller_config(config));
  ANTDT_TRY(auto solution, ctl::make_solution(config.control.solution));
  ANTDT_TRY(Shards shards,
            Shards::open(options.state_dir, train_set(config, data), eval_set(config, data)));
  std::optional<JobImage> image;
  if (!shards.recovered_image().empty()) {
    ANTDT_TRY(image, wire::decode<JobImage>(shards.recovered_image()));
    control.last_version = image->plan.version;
  }
  std::unique_ptr<JobDaemon> daemon(new JobDaemon(loop, std::move(options), std::move(config),
                                                  std::move(lock), spec, std::move(control),
                                                  std::move(solution), std::move(shards)));
  if (image) {
    daemon->resume_from_image(*image);
  } else {
    daemon->declare_job();
  }
  ANTDT_RETURN_IF_ERROR(daemon->listen(context));
  ANTDT_RETURN_IF_ERROR(daemon->dial_agents(context));
  return daemon;
}

JobDaemon::JobDaemon(EventLoop& loop, Options options, launcher::JobConfig config, FileLock lock,
                     ctl::JobSpec spec, ctl::ControllerConfig control,
                     std::unique_ptr<ctl::Solution> solution, Shards shards)
    : loop_(loop),
      options_(std::move(options)),
      config_(std::move(config)),
      config_json_(launcher::to_json(config_)),
      lock_(std::move(lock)),
      spec_(spec),
      shards_(std::move(shards)),
      lifecycle_(spec),
      membership_(key_of(config_)),
      controller_(std::move(control), std::move(solution)),
      events_(options_.run_dir + "/events.jsonl"),
      checkpoints_(options_.run_dir, config_.checkpoint.keep),
      began_(loop.now()) {
  loop_.at_turn_end([this] { finish_turn(); });
  loop_.call_after(kTick, [this] { tick(); });
  loop_.call_after(controller_.tick_interval(), [this] { control_tick(); });
}

Status JobDaemon::listen(transport::Context& context) {
  ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, options_.socket_dir + "/jobd.sock"));
  socket_.emplace(std::move(socket));
  loop_.watch_socket(*socket_, [this] { receive_direct(); });
  note("start", fmt::format("job {} (incarnation {})", config_.job.id, shards_.incarnation()));
  return {};
}

void JobDaemon::declare_job() {
  image_dirty_ = true;
  run(shards_.step(shard_server::event::JobDeclared{spec_.epochs, spec_.train_records,
                                                    spec_.protocol == ctl::Protocol::kAntdt},
                   loop_.now()));
}

void JobDaemon::resume_from_image(const JobImage& image) {
  seconds_before_ = image.seconds;
  lifecycle_.restore(image.lifecycle);
  std::vector<ctl::ExpectedMember> members;
  for (const ImageMember& m : image.members) members.push_back({m.member, m.host, m.host_order});
  for (const ctl::WorkerProcess& w : image.lifecycle.workers) {
    routes_[w.place.worker] = {w.place.host, ""};
  }
  for (const ImageAction& a : image.actions) {
    actions_.push_back({a.time_s, a.kind, a.target, a.reason, a.outcome});
  }
  for (const ImageEpoch& e : image.epochs) {
    EpochReport report{e.train_loss, e.samples, e.seconds, std::nullopt};
    if (e.evaluated) report.eval = {e.auc, e.log_loss, e.accuracy, e.eval_records};
    epochs_.push_back(report);
  }
  if (!members.empty()) {
    std::vector<ctl::Monitor::MemberInfo> group;
    for (const auto& m : members) group.push_back({m.member, m.host});
    membership_.restore(image.generation, std::move(members));
    step(ctl::Event(ctl::GroupFormed{group}));
  }
  if (lifecycle_.state() == ctl::JobState::kTraining) {
    progress_.begin_phase(lifecycle_.phase().phase, loop_.now());
  }
  // Members that wait for something we had decided but not said hear it now.
  if (lifecycle_.phase().phase > 0) send_to_members(lifecycle_.phase());
  note("recovered", fmt::format("incarnation {} goes on: {}, phase {}", shards_.incarnation(),
                                ctl::to_string(lifecycle_.state()), lifecycle_.phase().phase));
}

void JobDaemon::stop_job(const std::string& reason, Duration grace) {
  step(ctl::job::Event(ctl::job::StopAsked{reason, grace}));
}

void JobDaemon::tick() {
  loop_.call_after(kTick, [this] { tick(); });
  if (ended_) return;
  repeat_starts();
  step(ctl::job::Event(ctl::job::Tick{}));
}

void JobDaemon::control_tick() {
  loop_.call_after(controller_.tick_interval(), [this] { control_tick(); });
  if (lifecycle_.state() != ctl::JobState::kTraining || membership_.members().empty()) return;
  const JobReport now = report();
  step(ctl::Event(ctl::Tick{now.samples_total - std::min(now.samples_total, now.samples_done)}));
}

double JobDaemon::seconds() const { return seconds_before_ + to_seconds(loop_.now() - began_); }

std::vector<WorkerReport> JobDaemon::worker_reports() {
  std::vector<WorkerReport> reports;
  for (const ctl::WorkerProcess& w : lifecycle_.workers()) {
    WorkerReport r = measured_[w.place.worker];
    r.worker = w.place.worker;
    r.host = host_name(w.place.host);
    r.pid = w.pid;
    r.attempt = w.attempt;
    r.state = state_text(w.state);
    const auto& group = membership_.members();
    const auto member = std::ranges::find(group, w.member(), &ctl::ExpectedMember::member);
    if (member != group.end()) r.rank = static_cast<std::uint32_t>(member - group.begin());
    const auto& entries = controller_.plan().entries;
    const auto entry = std::ranges::find(entries, r.worker, &wire::PlanEntry::worker);
    if (entry != entries.end()) r.batch = ctl::share_of(*entry);
    const auto& seen = controller_.view().workers;
    const auto view = std::ranges::find_if(
        seen, [&](const ctl::WorkerView& v) { return v.member == w.member(); });
    if (view != seen.end() && view->measured) {
      r.samples_per_second = view->speed_transient;
      r.verdict = verdict_text(view->verdict);
    }
    reports.push_back(std::move(r));
  }
  return reports;
}

JobReport JobDaemon::report() {
  const wire::PhaseStart phase = lifecycle_.phase();
  JobReport r;
  r.job = config_.job.id;
  r.state = ctl::to_string(lifecycle_.state());
  r.generation = membership_.generation();
  r.incarnation = shards_.incarnation();
  r.epochs = spec_.epochs;
  r.epoch = std::min(phase.epoch.value, spec_.epochs > 0 ? spec_.epochs - 1 : 0);
  r.step = progress_.step();
  r.samples_total = spec_.train_records * spec_.epochs;
  const bool training = phase.what == "train";
  r.samples_done =
      phase.phase == 0
          ? 0
          : spec_.train_records * phase.epoch.value +
                (training ? std::max(progress_.samples_in_phase(), shards_.ledger().committed())
                 : phase.what == "eval" ? spec_.train_records
                                        : 0);
  r.wall_seconds = seconds();
  r.training_seconds = progress_.training_seconds();
  std::uint64_t trained = 0;
  double trained_seconds = 0;
  for (const EpochReport& e : epochs_) {
    trained += e.samples;
    trained_seconds += e.seconds;
  }
  r.samples_per_second = training && !ended_   ? progress_.samples_per_second()
                         : trained_seconds > 0 ? static_cast<double>(trained) / trained_seconds
                                               : 0;
  if (training) r.train_loss = progress_.recent_loss();
  r.message = message_;
  r.workers = worker_reports();
  r.actions = actions_;
  r.epoch_reports = epochs_;
  r.outcome = lifecycle_.image().outcome;
  return r;
}

JobImage JobDaemon::image() const {
  JobImage image;
  image.lifecycle = lifecycle_.image();
  image.generation = membership_.generation();
  for (const ctl::ExpectedMember& m : membership_.members()) {
    image.members.push_back({m.member, m.host, m.host_order});
  }
  image.plan = controller_.plan();
  for (const ActionReport& a : actions_) {
    image.actions.push_back({a.time_s, a.kind, a.target, a.reason, a.outcome});
  }
  for (const EpochReport& e : epochs_) {
    ImageEpoch kept{e.train_loss, e.seconds, e.samples, e.eval.has_value(), 0, {}, {}, {}};
    if (e.eval) {
      kept.eval_records = e.eval->records;
      kept.auc = e.eval->auc;
      kept.log_loss = e.eval->log_loss;
      kept.accuracy = e.eval->accuracy;
    }
    image.epochs.push_back(kept);
  }
  image.seconds = seconds();
  return image;
}

}  // namespace antdt::jobd
