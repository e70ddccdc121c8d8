#include "antdtd/job_keeper.h"

#include <algorithm>
#include <array>

namespace antdt::antdtd {
namespace {

// What a job daemon ends with when its job is over (docs/agent.md).
constexpr std::array<std::int32_t, 6> kJobIsOver = {0, 1, 2, 3, 4, 75};

std::string how_it_ended(const ExitStatus& status) {
  if (!status.error.empty()) return status.error;
  if (status.signal != 0) return fmt::format("it was ended by signal {}", status.signal);
  return fmt::format("it ended with exit code {}", status.code);
}

// 0 after the first death: an outage should be short. Doubling afterwards, so
// that a daemon that dies at once does not keep the machine busy.
Duration pause_after(std::size_t deaths) {
  constexpr Duration kShortest = std::chrono::milliseconds(100);
  if (deaths <= 1) return Duration::zero();
  return std::min(JobKeeper::kLongestPause,
                  kShortest * (1 << std::min<std::size_t>(deaths - 1, 10)));
}

}  // namespace

JobKeeper::Decision JobKeeper::start() {
  if (state_ != State::kIdle) return {};
  state_ = State::kUp;
  attempt_ = attempt_.next();
  return {true, {}};
}

void JobKeeper::adopt(Attempt attempt) {
  if (attempt < attempt_) return;
  attempt_ = attempt;
  state_ = State::kUp;
}

JobKeeper::Decision JobKeeper::exited(const ExitStatus& status, MonoTime now) {
  if (state_ != State::kUp) return {};
  heard_at_.reset();
  const bool says_over =
      std::find(kJobIsOver.begin(), kJobIsOver.end(), status.code) != kJobIsOver.end();
  if (last_ || says_over) {
    state_ = State::kOver;
    return {false, "the job is over: " + how_it_ended(status)};
  }
  if (!status.error.empty()) {
    state_ = State::kGaveUp;
    return {false, "the job daemon cannot be started: " + status.error};
  }
  const bool soon = up_since_ && now - *up_since_ < kSoon;
  deaths_ = soon ? deaths_ + 1 : 1;
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
  return {false, std::move(note)};
}

JobKeeper::Decision JobKeeper::tick(MonoTime now) {
  const auto next = next_wakeup();
  if (!next || now < *next) return {};
  if (state_ == State::kUp) {
    const Duration silence = now - *heard_at_;
    heard_at_.reset();
    return {false,
            fmt::format("the job daemon has said nothing for {:.0f} s: it is killed",
                        to_seconds(silence)),
            true};
  }
  state_ = State::kUp;
  up_since_ = now;
  attempt_ = attempt_.next();
  return {true};
}

std::optional<MonoTime> JobKeeper::next_wakeup() const {
  if (state_ == State::kRestarting) return restart_at_;
  if (state_ != State::kUp || !heard_at_ || hung_after_ <= Duration::zero()) return std::nullopt;
  return *heard_at_ + hung_after_;
}

}  // namespace antdt::antdtd
