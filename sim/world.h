// Virtual time: what is to happen, in order; what did happen, for people; and
// the first invariant that was broken.
//
// Everything in a simulation happens in an event of one World, and whatever is
// random comes from its Rng: one seed is one run, to the last event.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "sim/rng.h"

namespace antdt::sim {

// What is scheduled for something that may die: it does not happen after.
class Life {
 public:
  Life() : token_(std::make_shared<char>()) {}
  void end() { token_ = std::make_shared<char>(); }
  [[nodiscard]] std::weak_ptr<char> watch() const { return token_; }

 private:
  std::shared_ptr<char> token_;
};

struct Violation {
  std::string invariant;
  std::string detail;
  std::uint64_t event = 0;  // number of the event in which it was seen
};

class World {
 public:
  using Action = std::function<void()>;

  World(std::uint64_t seed, bool trace) : rng_(seed), trace_(trace) {}

  [[nodiscard]] MonoTime now() const { return now_; }
  [[nodiscard]] Duration elapsed() const { return now_ - kStart; }
  Rng& rng() { return rng_; }

  void at(MonoTime when, Action action) {
    queue_.emplace(std::pair(std::max(when, now_), ++scheduled_), std::move(action));
  }
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  void after(const Life& life, Duration delay, Action action) {
    after(delay, [watch = life.watch(), action = std::move(action)] {
      if (!watch.expired()) action();
    });
  }
  // False when there is nothing more.
  bool run_one();

  // The first one counts.
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
  void say_line(const std::string& line);

  Rng rng_;
  bool trace_;
  MonoTime now_ = kStart;
  std::map<std::pair<MonoTime, std::uint64_t>, Action> queue_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t events_ = 0;
  std::optional<Violation> violation_;
  std::string transcript_;
};

}  // namespace antdt::sim
