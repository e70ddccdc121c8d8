// Virtual time: the events to come, in order; a log of past events for people; and the first
// invariant that was broken.
//
// Everything in a simulation happens in an event of one World, and all randomness comes from its
// Rng: one seed determines the whole run.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "sim/rng.h"

namespace antdt::sim {

using Action = std::function<void()>;

// Something that may die or stand still. What is scheduled for it does not happen after its end,
// and waits while it is frozen.
class Life {
 public:
  Life() : state_(std::make_shared<State>()) {}
  void end() { state_ = std::make_shared<State>(); }
  void freeze() { ++state_->frozen; }
  // It goes on when it was thawed as often as it was frozen; returns the actions that waited
  // meanwhile.
  [[nodiscard]] std::vector<Action> thaw() {
    if (state_->frozen == 0 || --state_->frozen > 0) return {};
    return std::exchange(state_->postponed, {});
  }
  [[nodiscard]] bool frozen() const { return state_->frozen > 0; }

  struct State {
    int frozen = 0;
    std::vector<Action> postponed;
  };
  [[nodiscard]] std::weak_ptr<State> watch() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

struct Violation {
  std::string invariant;
  std::string detail;
  std::uint64_t event = 0;  // the number of the event in which it was found
};

class World {
 public:
  using Action = sim::Action;

  World(std::uint64_t seed, bool trace) : rng_(seed), trace_(trace) {}

  [[nodiscard]] MonoTime now() const { return now_; }
  [[nodiscard]] Duration elapsed() const { return now_ - kStart; }
  Rng& rng() { return rng_; }

  void at(MonoTime when, Action action) { schedule(when, std::nullopt, std::move(action)); }
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  void after(const Life& life, Duration delay, Action action) {
    schedule(now_ + delay, life.watch(), std::move(action));
  }
  // Returns false if there is no event left.
  bool run_one();

  // Only the first violation counts.
  void violate(std::string invariant, std::string detail);
  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    if (trace_) say_line(fmt::format(text, std::forward<Args>(args)...));
  }
  [[nodiscard]] bool tracing() const { return trace_; }
  [[nodiscard]] const std::string& transcript() const { return transcript_; }

 private:
  static constexpr MonoTime kStart = MonoTime(std::chrono::seconds(1000));
  struct Scheduled {
    std::optional<std::weak_ptr<Life::State>> life;
    Action action;
  };
  // The earliest event first; events of one moment in the order in which they were scheduled.
  struct Due {
    MonoTime when;
    std::uint64_t number = 0;
    std::uint32_t place = 0;  // index in scheduled_
    bool operator<(const Due& other) const {
      return std::tie(other.when, other.number) < std::tie(when, number);
    }
  };
  void schedule(MonoTime when, std::optional<std::weak_ptr<Life::State>> life, Action action);
  void say_line(const std::string& line);

  Rng rng_;
  bool trace_;
  MonoTime now_ = kStart;
  std::vector<Due> queue_;  // a heap
  std::vector<Scheduled> scheduled_;
  std::vector<std::uint32_t> free_;  // free indices in scheduled_
  std::uint64_t numbers_ = 0;
  std::uint64_t events_ = 0;
  std::optional<Violation> violation_;
  std::string transcript_;
};

}  // namespace antdt::sim
