#include "antdtd/agent/job_keeper.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace antdt::antdtd::keeper {
namespace {

// Exit codes with which a job daemon says that its job is over (docs/agent.md).
constexpr std::array<std::int32_t, 6> kJobIsOver = {0, 1, 2, 3, 4, 75};

// Signals of a crash, which nobody sends on purpose.
bool crashed(const ExitStatus& status) {
  constexpr std::array<std::int32_t, 7> kOwn = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
                                                SIGILL,  SIGSYS,  SIGTRAP};
  return std::ranges::find(kOwn, status.signal) != kOwn.end();
}

// The end of its output, short enough for a message; up to 64 KiB may be there.
std::string last_words(const ExitStatus& status) {
  constexpr std::size_t kMost = 600;
  std::string_view text = status.last_lines;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() > kMost) text.remove_prefix(text.size() - kMost);
  return text.empty() ? "it wrote nothing" : fmt::format("it wrote: {}", text);
}

constexpr std::int32_t kCouldNotBegin = 5;

std::string how_it_ended(const ExitStatus& status) {
  if (!status.error.empty()) return status.error;
  if (status.signal != 0) return fmt::format("it was ended by signal {}", status.signal);
  return fmt::format("it ended with exit code {}", status.code);
}

// 0 after the first death, so that an outage is short. Then it doubles, so that a daemon that dies
// at once does not keep the machine busy.
Duration pause_after(std::size_t deaths) {
  constexpr Duration kShortest = std::chrono::milliseconds(100);
  if (deaths <= 1) return Duration::zero();
  return std::min(JobKeeper::kLongestPause,
                  kShortest * (1 << std::min<std::size_t>(deaths - 1, 10)));
}

}  // namespace

void JobKeeper::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  check_invariants();
}

void JobKeeper::on(const StartOrdered&, MonoTime now, Effects& out) {
  if (state_ != State::kIdle) return;
  launch(now, out);
}

void JobKeeper::on(const DaemonAdopted& input, MonoTime now, Effects&) {
  if (input.attempt < attempt_) return;
  attempt_ = input.attempt;
  state_ = State::kUp;
  heard_at_ = now;
}

void JobKeeper::on(const JobEndAnnounced&, MonoTime, Effects&) { job_is_over_ = true; }

void JobKeeper::on(const DaemonSpoke&, MonoTime now, Effects&) { heard_at_ = now; }

// from: up or killing, to: over, gave up, or restarting.
void JobKeeper::on(const DaemonExited& input, MonoTime now, Effects& out) {
  if (state_ != State::kUp && state_ != State::kKilling) return;
  const ExitStatus& status = input.status;
  heard_at_.reset();
  const bool says_over =
      std::find(kJobIsOver.begin(), kJobIsOver.end(), status.code) != kJobIsOver.end();
  if (job_is_over_ || says_over) {
    state_ = State::kOver;
    out.emplace_back(ReportOnJob{"the job is over: " + how_it_ended(status)});
    return;
  }
  if (!status.error.empty()) {
    return give_up("its job daemon cannot be started: " + status.error, out);
  }
  count(status, now);
  if (const std::string why = hopeless(now); !why.empty()) {
    return give_up(
        fmt::format("its job daemon {}: {}; {}", why, how_it_ended(status), last_words(status)),
        out);
  }
  state_ = State::kRestarting;
  const Duration pause = pause_after(deaths_);
  restart_at_ = now + pause;
  std::string note =
      fmt::format("the job daemon died: {}; it is started again", how_it_ended(status));
  if (deaths_ > 1) {
    note += fmt::format(
        " in {:.1f} s, as it died {} times in a row soon after its start (its last "
        "words are in logs/jobd.{}.err of the run directory)",
        to_seconds(pause), deaths_, attempt_);
  }
  out.emplace_back(ReportOnJob{std::move(note)});
}

// from: up or killing, to: gave up.
void JobKeeper::give_up(std::string why, Effects& out) {
  state_ = State::kGaveUp;
  out.emplace_back(ReportOnJob{fmt::format(
      "the job ends because {}; once that is mended, antdt run --resume goes on", why)});
  out.emplace_back(GiveUpJob{std::move(why)});
}

// from: idle or restarting, to: up.
void JobKeeper::launch(MonoTime now, Effects& out) {
  if (state_ == State::kRestarting) up_since_ = now;
  state_ = State::kUp;
  launched_at_ = now;
  attempt_ = attempt_.next();
  out.emplace_back(LaunchDaemon{attempt_});
}

void JobKeeper::count(const ExitStatus& status, MonoTime now) {
  const std::optional<Duration> lived =
      up_since_ ? std::optional<Duration>(now - *up_since_) : std::nullopt;
  // A daemon that could not begin may have waited for a disk first, so its lifetime does not
  // matter.
  const bool soon = status.code == kCouldNotBegin || (lived && *lived < kSoon);
  deaths_ = soon ? deaths_ + 1 : 1;
  if (!soon || !row_since_) row_since_ = now;
  if (!lived || *lived >= kSettled) crashes_ = 0;
  if (crashed(status)) ++crashes_;
}

std::string JobKeeper::hopeless(MonoTime now) const {
  if (crashes_ >= kMostCrashes) {
    return fmt::format("crashed {} times, each within {:.0f} s of its start", crashes_,
                       to_seconds(kSettled));
  }
  if (now - *row_since_ >= kPatience) {
    return fmt::format("could not go on for {:.0f} minutes, in {} attempts",
                       to_seconds(now - *row_since_) / 60, deaths_);
  }
  return "";
}

void JobKeeper::on(const TimePassed&, MonoTime now, Effects& out) {
  const auto next = next_wakeup();
  if (!next || now < *next) return;
  switch (state_) {
    case State::kUp:  // to: killing
      state_ = State::kKilling;
      shim_killed_at_ = now + kKillPatience;
      out.emplace_back(
          ReportOnJob{fmt::format("the job daemon has said nothing for {:.0f} s: it is killed",
                                  to_seconds(now - heard_at_.value_or(launched_at_)))});
      out.emplace_back(KillDaemon{});
      return;
    case State::kKilling:  // stays in killing
      shim_killed_at_ = now + kKillPatience;
      out.emplace_back(ReportOnJob{"the shim of the job daemon does not answer: it is killed"});
      out.emplace_back(KillShim{});
      return;
    case State::kRestarting:
      return launch(now, out);
    case State::kIdle:
    case State::kOver:
    case State::kGaveUp:
      return;
  }
}

std::optional<MonoTime> JobKeeper::next_wakeup() const {
  if (state_ == State::kRestarting) return restart_at_;
  if (state_ == State::kKilling) return shim_killed_at_;
  if (state_ != State::kUp || hung_after_ <= Duration::zero()) return std::nullopt;
  const Duration patience = job_is_over_ ? std::max(kAfterTheEnd, hung_after_) : hung_after_;
  return heard_at_ ? *heard_at_ + patience : launched_at_ + std::max(kUnheard, patience);
}

void JobKeeper::check_invariants() const {
  ANTDT_CHECK(state_ == State::kIdle || attempt_ != Attempt{}, "a job daemon without an attempt");
  ANTDT_CHECK(state_ != State::kRestarting || row_since_.has_value(),
              "a job daemon is started again that has not died");
}

}  // namespace antdt::antdtd::keeper
