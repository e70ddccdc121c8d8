#include "ctl/processes/worker_process.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace antdt::ctl {
namespace {

constexpr double kQuickSeconds = 60;
constexpr double kLongestDelaySeconds = 30;

}  // namespace

// The states have the same order in both.
ProcessState process_state(WorkerProcess::State state) {
  static_assert(static_cast<int>(WorkerProcess::kRemoved) ==
                static_cast<int>(ProcessState::kRemoved));
  return static_cast<ProcessState>(state);
}

ProcessState reported_state(const WorkerProcess& worker) {
  return worker.leaving() && worker.running() ? ProcessState::kLeaving
                                              : process_state(worker.state);
}

bool ended_quickly(const WorkerProcess& worker) {
  return worker.exited_at_s - worker.started_at_s < kQuickSeconds;
}

double restart_delay_s(std::uint32_t quick_failures) {
  if (quick_failures < 2) return 0;
  return std::min(kLongestDelaySeconds, std::exp2(std::min(quick_failures, 10U) - 3.0));
}

// ---------------------------------------------------------------- the journal's form

WorkerProcess::WorkerProcess(WorkerProcessImage image)
    : place(std::move(image.place)),
      attempt(image.attempt),
      state(static_cast<State>(image.state)),
      pid(image.pid),
      after(image.stays_away   ? After::kStaysAway
            : image.comes_back ? After::kComesBack
                               : After::kElsewhere),
      goes_to(std::move(image.goes_to)),
      standing(image.apart      ? Standing::kApart
               : image.moves_in ? Standing::kMovesIn
                                : Standing::kOfGroup),
      waits_until_s(image.waits_until_s),
      started_at_s(image.started_at_s),
      quick_failures(image.quick_failures),
      code(image.code),
      signal(image.signal),
      error(std::move(image.error)),
      last_lines(std::move(image.last_lines)),
      oom(std::move(image.oom)),
      device(std::move(image.device)),
      orphaned(image.orphaned),
      exited_at_s(image.exited_at_s) {
  if (image.leaving) leaves_until_s = image.leaves_until_s;
  if (image.asked_to_stop || image.hung) {
    stop = {image.hung ? StopOrder::Why::kHung : StopOrder::Why::kAsked, image.killed_from_s};
  }
}

WorkerProcessImage WorkerProcess::image() const {
  WorkerProcessImage image;
  image.place = place;
  image.attempt = attempt;
  image.state = state;
  image.pid = pid;
  image.asked_to_stop = asked_to_stop();
  image.leaving = leaving();
  image.leaves_until_s = leaves_until_s.value_or(0);
  image.stays_away = stays_away();
  image.comes_back = comes_back();
  image.hung = hung();
  image.moves_in = moves_in();
  image.apart = apart();
  image.killed_from_s = stop ? stop->killed_from_s : 0;
  image.waits_until_s = waits_until_s;
  image.started_at_s = started_at_s;
  image.quick_failures = quick_failures;
  image.code = code;
  image.signal = signal;
  image.orphaned = orphaned;
  image.exited_at_s = exited_at_s;
  image.goes_to = goes_to;
  if (state == kRemoved) return image;  // the failures say how it ended
  image.error = error;
  image.last_lines = last_lines;
  image.oom = oom;
  image.device = device;
  return image;
}

// -------------------------------------------------------------------- transitions

WorkerProcess WorkerProcess::planned(const PlacedWorker& place, double now_s) {
  WorkerProcess worker;
  worker.place = place;
  worker.attempt = Attempt{1};
  worker.started_at_s = now_s;
  return worker;
}

WorkerProcess WorkerProcess::wait(const PlacedWorker& place, Attempt attempt, Standing standing) {
  WorkerProcess worker;
  worker.place = place;
  worker.attempt = attempt;
  worker.state = kWaiting;
  worker.standing = standing;
  return worker;
}

void WorkerProcess::plan_on(const std::string& host, std::uint32_t host_order, double now_s) {
  place.host = host;
  place.host_order = host_order;
  state = kPlanned;
  started_at_s = now_s;
}

// On a busy host a process may join before its agent has reported that it runs.
bool WorkerProcess::start(std::uint32_t process_id, double now_s) {
  const bool joined_before = state == kJoined && pid == 0;
  if (state != kPlanned && !joined_before) return false;
  if (!joined_before) state = kStarted;
  pid = process_id;
  started_at_s = now_s;
  return true;
}

bool WorkerProcess::join() {
  if (state != kPlanned && state != kStarted) return false;
  state = kJoined;
  return true;
}

void WorkerProcess::exit(const wire::ProcessExited& how, double now_s) {
  state = kExited;
  code = how.code;
  signal = how.signal;
  if (!hung()) error = how.error;
  last_lines = how.last_lines;
  oom = how.oom;
  device = how.device;
  orphaned = how.orphaned;
  exited_at_s = now_s;
}

void WorkerProcess::lose(std::string why, double now_s) {
  state = kExited;
  exited_at_s = now_s;
  error = std::move(why);
}

void WorkerProcess::refuse(double now_s) {
  state = kExited;
  exited_at_s = now_s;
}

void WorkerProcess::stop_waiting() {
  if (state == kWaiting) state = kExited;
}

void WorkerProcess::wait_for_gang() { state = kWaiting; }

void WorkerProcess::begin_again(double now_s) {
  const std::uint32_t failures = ended_quickly(*this) ? quick_failures + 1 : 0;
  WorkerProcess next = wait(place, attempt.next(), apart() ? Standing::kApart : Standing::kOfGroup);
  next.quick_failures = failures;
  next.waits_until_s = now_s + restart_delay_s(failures);
  *this = std::move(next);
}

// A process that was found hung stays marked as hung.
void WorkerProcess::ask_to_stop(double killed_from_s) {
  if (!stop) stop = StopOrder{};
  stop->killed_from_s = killed_from_s;
}

void WorkerProcess::found_hung(const std::string& why, double now_s) {
  stop = {StopOrder::Why::kHung, now_s};
  error = why;
}

std::string_view WorkerProcess::broken_invariant() const {
  if (attempt == Attempt{}) return "it has no attempt";
  if (!is_server() && standing != Standing::kOfGroup) return "a worker stands as a server";
  if (state == kPlanned && pid != 0) return "it is planned, and runs";
  return {};
}

}  // namespace antdt::ctl
