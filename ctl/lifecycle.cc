#include "ctl/lifecycle.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {
namespace {

// Steps further apart than this do not count as training in between.
constexpr Duration kStepGap = std::chrono::seconds(30);

JobState state_in(const wire::PhaseStart& phase) {
  return phase.what == "train"  ? JobState::kTraining
         : phase.what == "eval" ? JobState::kEvaluating
                                : JobState::kFinishing;
}

}  // namespace

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::kStarting:
      return "starting";
    case JobState::kForming:
      return "forming";
    case JobState::kTraining:
      return "training";
    case JobState::kEvaluating:
      return "evaluating";
    case JobState::kFinishing:
      return "finishing";
    case JobState::kStopping:
      return "stopping";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
  }
  return "unknown";
}

std::vector<job::Effect> Lifecycle::step(const job::Event& event, MonoTime now) {
  now_ = now;
  if (!began_) began_ = now;
  Effects out;
  if (ended_) return out;
  std::visit([&](const auto& e) { on(e, out); }, event);
  return out;
}

LifecycleImage Lifecycle::image() const {
  LifecycleImage image = image_;
  image.hosts = hosts_.all();
  image.budgets = budgets_.image();
  image.seconds = seconds();
  return image;
}

void Lifecycle::restore(LifecycleImage image, std::vector<Member> group) {
  image_ = std::move(image);
  hosts_.restore(image_.hosts);
  budgets_.restore(image_.budgets);
  seconds_before_ = image_.seconds;
  group_ = std::move(group);
  settled_ = !group_.empty();
  // The servers hear that they are to go on, too (ServerGroup::restore).
  if (image_.last_cut > 0) image_.checkpoint_pending = false;
  image_.last_cut = 0;
}

double Lifecycle::seconds() const {
  return seconds_before_ + (began_ ? to_seconds(now_ - *began_) : 0);
}

// They lie in the order of their numbers, servers before or after the workers. So
// it is where it should be, which is looked at first: every message asks for it.
const WorkerProcess* Lifecycle::find(WorkerId worker) const {
  const std::size_t count = image_.workers.size();
  const std::size_t servers = spec_.server_processes();
  for (const std::size_t before : {std::size_t{0}, servers, count - std::min(count, servers)}) {
    const std::size_t guess = before + worker.index;
    if (guess < count && image_.workers[guess].place.worker == worker) {
      return &image_.workers[guess];
    }
  }
  const auto found = std::ranges::find(image_.workers, worker,
                                       [](const WorkerProcess& w) { return w.place.worker; });
  return found == image_.workers.end() ? nullptr : &*found;
}

bool Lifecycle::is_current(Member member) const {
  const WorkerProcess* worker = find(member.worker);
  return worker != nullptr && worker->attempt == member.attempt && worker->running();
}

WorkerProcess* Lifecycle::find_mutable(Member member) {
  const WorkerProcess* worker = find(member.worker);
  const bool current = worker != nullptr && worker->attempt == member.attempt;
  return current ? const_cast<WorkerProcess*>(worker) : nullptr;
}

std::uint64_t Lifecycle::last_phase() const {
  return spec_.epochs * (spec_.eval_records > 0 ? 2ULL : 1ULL) + 1;
}

wire::PhaseStart Lifecycle::describe(std::uint64_t phase) const {
  wire::PhaseStart start;
  start.phase = phase;
  if (phase == 0) return start;
  if (phase >= last_phase()) {
    start.what = "finish";
    start.epoch = Epoch{spec_.epochs};
    return start;
  }
  const std::uint64_t index = phase - 1;
  const std::uint64_t phases_an_epoch = spec_.eval_records > 0 ? 2 : 1;
  const bool train = index % phases_an_epoch == 0;
  start.what = train ? "train" : "eval";
  start.epoch = Epoch{static_cast<std::uint32_t>(index / phases_an_epoch)};
  start.records = train ? spec_.train_records : spec_.eval_records;
  return start;
}

// ------------------------------------------------------------- start and group

void Lifecycle::on(const job::Placed& e, Effects& out) {
  for (const PlacedWorker& place : e.workers) {
    WorkerProcess worker;
    worker.place = place;
    worker.attempt = Attempt{1};
    worker.started_at_s = seconds();
    image_.workers.push_back(std::move(worker));
  }
  set_state(JobState::kStarting);
  if (spec_.external) {
    image_.collective = false;
    open_phase(1, out);
    return;
  }
  out.emplace_back(job::SaveImage{});
  if (spec_.protocol == Protocol::kTorchrun) {
    out.emplace_back(job::PrepareGang{e.workers});
    return;
  }
  for (const WorkerProcess& w : image_.workers) {
    out.emplace_back(job::StartWorker{w.member(), w.place.host});
  }
  expect(out);
}

void Lifecycle::on(const job::Started& e, Effects& out) {
  WorkerProcess* worker = find_mutable(e.member);
  if (worker == nullptr) return;
  // On a busy host one may join before its agent has said that it runs.
  const bool joined_before = worker->state == WorkerProcess::kJoined && worker->pid == 0;
  if (worker->state != WorkerProcess::kPlanned && !joined_before) return;
  if (!joined_before) worker->state = WorkerProcess::kStarted;
  worker->pid = e.pid;
  worker->started_at_s = seconds();
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{
      "worker-started",
      fmt::format(
          "{} started on {} (pid {}{})", e.member.worker, host_name(worker->place.host), e.pid,
          e.member.attempt.value > 1 ? fmt::format(", attempt {}", e.member.attempt) : "")});
  if (state() != JobState::kStarting) return;
  // The last ones are started last.
  const bool all =
      std::none_of(image_.workers.rbegin(), image_.workers.rend(),
                   [](const WorkerProcess& w) { return w.state == WorkerProcess::kPlanned; });
  if (!all) return;
  set_state(spec_.protocol == Protocol::kAntdt ? JobState::kForming : JobState::kTraining);
}

bool Lifecycle::welcomes(Member member) const {
  if (member.worker.role == 's') return true;
  if (image_.model_kept) return false;
  if (state() != JobState::kFinishing || group_.empty()) return true;
  return std::ranges::find(group_, member) != group_.end();
}

void Lifecycle::on(const job::Joined& e, Effects& out) {
  if (e.collective && !welcomes(e.member)) {
    if (WorkerProcess* late = find_mutable(e.member); late != nullptr && !late->leaving) {
      late->leaving = true;
      late->leaves_until_s = seconds() + to_seconds(spec_.stop_grace);
    }
    out.emplace_back(job::SaveImage{});  // that it leaves is our wish, after a restart too
    out.emplace_back(job::LeaveWorker{e.member, {"the job is at its end", kExitResumable}});
    return;
  }
  if (WorkerProcess* worker = find_mutable(e.member)) {
    if (worker->running() && worker->state != WorkerProcess::kJoined) {
      worker->state = WorkerProcess::kJoined;
      out.emplace_back(job::SaveImage{});
      order_last_cut(out);
    }
  }
  if (e.collective || stopping()) return;
  image_.collective = false;
  if (image_.phase == 0) open_phase(1, out);
}

void Lifecycle::on(const job::GenerationSettled& e, Effects& out) {
  settled_ = true;
  group_ = e.members;
  done_with_.clear();
  for (const Member member : group_) {
    if (WorkerProcess* w = find_mutable(member)) w->quick_failures = 0;
  }
  for (WorkerProcess& w : image_.workers) {
    if (w.is_server()) w.quick_failures = 0;
  }
  for (FailureRecord& f : image_.failures) {
    if (f.incident != image_.incident || f.recovered_in_s) continue;
    f.recovered_in_s = seconds() - f.time_s;
  }
  const bool had_failures =
      !image_.failures.empty() && image_.failures.back().incident == image_.incident;
  if (had_failures) ++image_.incident;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::Note{"generation", fmt::format("generation {} is settled: {} workers",
                                                       e.generation, e.members.size())});
  if (stopping()) return;
  if (image_.phase == 0) return open_phase(1, out);
  // Resumed where the last incarnation had gone back to a checkpoint already.
  if (state() == JobState::kForming) set_state(state_in(describe(image_.phase)));
  out.emplace_back(job::AnnouncePhase{describe(image_.phase)});
}

void Lifecycle::on(const job::GenerationOver&, Effects& out) {
  settled_ = false;
  end_moves(out);
  image_.last_cut = 0;
  if (!image_.checkpoint_pending || being_written_ == image_.checkpoints_ordered) return;
  image_.checkpoint_pending = false;  // nobody will begin it any more
  out.emplace_back(job::SaveImage{});
  if (ends_with_checkpoint()) {
    stop_all(spec_.stop_grace, out);
  }
}

void Lifecycle::on(const job::Progressed&, Effects& out) {
  if (last_progress_ && now_ - *last_progress_ < kStepGap) {
    image_.trained_s += to_seconds(now_ - *last_progress_);
  }
  last_progress_ = now_;
  if (image_.made_progress) return;
  image_.made_progress = true;
  out.emplace_back(job::SaveImage{});
}

// --------------------------------------------------------------------- phases

void Lifecycle::open_phase(std::uint64_t phase, Effects& out) {
  image_.phase = phase;
  drained_ = false;
  const wire::PhaseStart start = describe(phase);
  if (phase == 1) last_checkpoint_ = now_;
  set_state(state_in(start));
  if (start.what == "finish") {
    for (WorkerProcess& w : image_.workers) {  // too late to be of use
      const bool late = w.state == WorkerProcess::kWaiting && !w.is_server();
      if (late) w.state = WorkerProcess::kRemoved;
    }
  }
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::OpenPhase{start});
  if (start.what != "finish") return;
  give_up_servers("all is trained", out);
  if (spec_.servers > 0) order_checkpoint(out);  // the model is theirs
  if (spec_.external) end_if_all_left(out);
}

void Lifecycle::on(const job::PhaseDrained& e, Effects& out) {
  if (e.phase != image_.phase) return;
  drained_ = true;
  advance_if_complete(out);
}

void Lifecycle::on(const job::MemberDone& e, Effects& out) {
  std::uint64_t& done = done_with_[e.member.worker];
  done = std::max(done, e.phase);
  advance_if_complete(out);
}

void Lifecycle::advance_if_complete(Effects& out) {
  if (!drained_ || stopping() || image_.phase >= last_phase()) return;
  if (image_.last_cut > 0) return;  // it is one of this phase
  if (image_.collective) {
    if (!settled_) return;  // the next generation goes on here
    if (state() == JobState::kTraining) {
      // Everybody must be out of the last collective before the next phase.
      const auto trains_on = [&](Member member) {
        const auto done = done_with_.find(member.worker);
        return is_current(member) && (done == done_with_.end() || done->second < image_.phase);
      };
      // They say it one after the other: the last one is asked first.
      if (std::any_of(group_.rbegin(), group_.rend(), trains_on)) return;
    }
  }
  open_phase(image_.phase + 1, out);
}

void Lifecycle::on(const job::Restored& e, Effects& out) {
  image_.phase = e.phase;
  image_.checkpoint_pending = image_.model_kept = false;
  drained_ = false;
  done_with_.clear();
  settled_ = false;
  group_.clear();
  last_checkpoint_ = now_;
  set_state(e.phase > 0 ? state_in(describe(e.phase)) : JobState::kForming);
  out.emplace_back(job::SaveImage{});
}

// ----------------------------------------------------------------- checkpoints

void Lifecycle::order_checkpoint(Effects& out) {
  last_checkpoint_ = now_;
  ++image_.checkpoints_ordered;
  image_.checkpoint_pending = true;
  out.emplace_back(job::SaveImage{});
  out.emplace_back(job::OrderCheckpoint{image_.checkpoints_ordered,
                                        image_.checkpoints_ordered == image_.last_cut});
}

void Lifecycle::on(const job::CheckpointBegun& e, Effects&) { being_written_ = e.number; }

void Lifecycle::on(const job::CheckpointStored& e, Effects& out) {
  const bool was_begun = being_written_ != 0 && e.number == being_written_;
  if (was_begun) being_written_ = 0;
  // Storing takes its time: an earlier order may be answered when a later one is waited for.
  const bool is_earlier = e.number < image_.checkpoints_ordered;
  if (!is_earlier) image_.checkpoint_pending = false;
  const bool is_of_training = was_begun || (spec_.servers > 0 && is_earlier);
  const bool changes_servers = is_last_cut(e, out);
  if (e.error.empty()) {
    image_.checkpoints_stored = std::max(image_.checkpoints_stored, e.number);
    image_.checkpoints_ordered = std::max(image_.checkpoints_ordered, e.number);
    checkpoint_error_.clear();
  } else if (std::exchange(checkpoint_error_, e.error) != e.error) {
    const bool is_model = state() == JobState::kFinishing && !is_of_training;
    out.emplace_back(job::Note{
        "checkpoint-failed",
        is_model ? fmt::format("all records are trained, and the model cannot be kept: {}; the job "
                               "waits, and goes on by itself when it can",
                               e.error)
                 : e.error});
  }
  out.emplace_back(job::SaveImage{});
  if (changes_servers) return change_servers(out);
  if (state() == JobState::kFinishing) {
    // In training: it is not the trained model.
    if (is_of_training) return;
    if (!e.error.empty()) return;  // the members hold it, and write it again
    image_.model_kept = true;
    out.emplace_back(job::LeaveAll{{"the job is done", 0}});
    for (WorkerProcess& w : image_.workers) {  // who has not joined cannot hear it
      if (w.is_server()) continue;
      if (w.state == WorkerProcess::kWaiting) w.state = WorkerProcess::kRemoved;
      const bool deaf = w.state == WorkerProcess::kPlanned || w.state == WorkerProcess::kStarted;
      if (deaf) stop_worker(w, spec_.stop_grace, out);
    }
    return end_if_all_left(out);
  }
  if (!ends_with_checkpoint()) return;
  image_.outcome->resumable = image_.checkpoints_stored > 0;
  if (is_earlier) return;  // a stop waits for its own
  out.emplace_back(job::LeaveAll{{image_.outcome->first_cause, kExitResumable}});
}

}  // namespace antdt::ctl
