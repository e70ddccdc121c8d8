#include "ctl/lifecycle/state/incidents.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace antdt::ctl {
namespace {

// Time between two steps counts as training unless they are further apart than this or, if no
// process failed between them, than the longest step that the job allows.
constexpr Duration kStepGap = std::chrono::seconds(30);
// The end of a peer is noticed within this time.
constexpr double kVictimSeconds = 5;

// The first line is a sentence of its own, which is all that lists of failures show.
std::string with_last_lines(std::string text, const std::string& last_lines) {
  if (last_lines.empty()) return text;
  return fmt::format("{}\nThe last lines of its error output:\n{}", text, last_lines);
}

// Whether the processes of a gang end like this when they lose a peer: with a program's own error,
// or because a library gives up.
bool may_be_victim(FailureClass cls, const WorkerProcess& worker) {
  return cls == FailureClass::kProgram ||
         (cls == FailureClass::kSignal && worker.signal == SIGABRT);
}

std::string how_ended(const WorkerProcess& worker, FailureClass cls) {
  const bool well = worker.code == 0 && worker.signal == 0 && worker.error.empty();
  if (well && cls == FailureClass::kProgram) return "ended before the job was over";
  if (well && cls == FailureClass::kConfiguration) {
    return "ended without having joined the job: a program of protocol \"antdt\" calls adt.init() "
           "(Python) or uses libantdt or the C++ kit; for any other program set "
           "roles.worker.protocol to \"torchrun\" or \"exec\"";
  }
  return describe_end(worker, cls);
}

}  // namespace

Incidents::Incidents(std::map<std::string, std::uint32_t> budgets, Duration refill,
                     Duration hang_after)
    : budgets_(std::move(budgets), refill), step_gap_(std::max(kStepGap, hang_after)) {}

Incidents::Image Incidents::image() const {
  Image image = image_;
  image.budgets = budgets_.image();
  return image;
}

void Incidents::restore(Image image) {
  image_ = std::move(image);
  budgets_.restore(image_.budgets);
}

// The first cause of the present incident is determined when the incident is over. If an incident
// goes on and on, its first failures and its newest are kept.
std::vector<FailureRecord> Incidents::take_old() {
  std::vector<FailureRecord>& all = image_.failures;
  std::vector<FailureRecord> taken;
  while (all.size() > kMostFailures) {
    const bool is_over = all.front().incident < image_.incident;
    if (!is_over && all.size() <= kMostOfAnIncident) break;
    const auto old = all.begin() + static_cast<std::ptrdiff_t>(is_over ? 0 : kMostFailures);
    taken.push_back(std::move(*old));
    all.erase(old);
  }
  return taken;
}

bool Incidents::progress(MonoTime now, bool late) {
  count_training(now, late);
  return !std::exchange(image_.made_progress, true);
}

void Incidents::run_well(MonoTime now) { count_training(now, false); }

void Incidents::count_training(MonoTime now, bool late) {
  const Duration longest = failed_since_ ? kStepGap : step_gap_;
  if (!late) failed_since_ = false;
  if (last_progress_ && now - *last_progress_ < longest) {
    image_.trained_s += to_seconds(now - *last_progress_);
  }
  last_progress_ = now;
}

void Incidents::record(const WorkerProcess& worker, const std::string& host_name, FailureClass cls,
                       double now_s) {
  failed_since_ = true;
  std::string cause =
      fmt::format("{} on {} {}", worker.place.worker, host_name, how_ended(worker, cls));
  image_.failures.push_back(
      {now_s, worker.place.worker, worker.attempt, host_name, static_cast<std::uint8_t>(cls),
       with_last_lines(std::move(cause), worker.last_lines), image_.incident, std::nullopt});
}

bool Incidents::take_budget(FailureClass cls) {
  const bool counted = cls == FailureClass::kHost &&
                       std::ranges::any_of(image_.failures, [&](const FailureRecord& f) {
                         return f.incident == image_.incident &&
                                f.cls == static_cast<std::uint8_t>(FailureClass::kHost);
                       });
  return counted || budgets_.take(cls, image_.trained_s);
}

void Incidents::exceed_budget(FailureClass cls) {
  image_.over_budget = fmt::format(
      "\nThis exceeds failure.budgets.{} = {}; raise it, or mend the cause, and resume.", cls,
      budgets_.limit(cls));
}

void Incidents::forgive() {
  image_.over_budget.clear();
  budgets_.restore({});
}

FailureClass Incidents::class_in_gang(FailureClass cls, const WorkerProcess& worker, double now_s) {
  if (may_be_victim(cls, worker)) return FailureClass::kCollective;
  if (cls != FailureClass::kSignal && cls != FailureClass::kOom && cls != FailureClass::kDevice) {
    return cls;
  }
  for (FailureRecord& f : image_.failures) {
    const bool before = f.incident == image_.incident &&
                        f.cls == static_cast<std::uint8_t>(FailureClass::kProgram) &&
                        now_s - f.time_s < kVictimSeconds;
    if (before) f.cls = static_cast<std::uint8_t>(FailureClass::kCollective);
  }
  return cls;
}

bool Incidents::is_open() const {
  return !image_.failures.empty() && image_.failures.back().incident == image_.incident;
}

void Incidents::went_back(std::uint64_t step) {
  for (FailureRecord& f : image_.failures) {
    if (!f.recovered_in_s) f.went_back_to = step;
  }
}

void Incidents::close() {
  for (FailureRecord& f : image_.failures) {
    if (f.incident == image_.incident) shorten_cause(f);
  }
  ++image_.incident;
}

void Incidents::end(double now_s) {
  for (FailureRecord& f : image_.failures) {
    if (!f.recovered_in_s) f.recovered_in_s = now_s - f.time_s;
  }
  if (is_open()) close();
}

const FailureRecord* Incidents::first_cause() const {
  const std::size_t first = ctl::first_cause(image_.failures, image_.incident);
  return first == image_.failures.size() ? nullptr : &image_.failures[first];
}

}  // namespace antdt::ctl
