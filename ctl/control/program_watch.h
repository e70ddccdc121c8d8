// When the program that is a job's solution is started, asked and ended.
//
//   waiting ──TimePassed, the pause is over──> starting     (StartProgram)
//   starting ──ProgramStarted──> ready
//   ready ──ViewShown──> asked ──DecisionHeard──> ready
//   asked ──TimePassed, the answer is late──> waiting       (EndProgram, TellOperator)
//   any but waiting ──ProgramFailed──> waiting              (EndProgram, TellOperator)
//
// Each failure doubles the pause before the next start; kReliable answers in a row reset it.
// Whatever the program does, the worst effect on the job is that no decision is made.
// Nothing is durable: a job daemon that is started again starts the program again.
// Its driver is jobd/programs/own_program.h. docs/machines.md describes the shape of a machine.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"

namespace antdt::ctl::program {

struct TimePassed {};
struct ProgramStarted {};
struct ViewShown {};
struct DecisionHeard {};
struct ProgramFailed {
  std::string why;  // the end of a sentence that begins with "the program"
};
using Input = std::variant<TimePassed, ProgramStarted, ViewShown, DecisionHeard, ProgramFailed>;

struct StartProgram {};
struct EndProgram {};  // ends the program and every process that it started
struct TellOperator {  // sent once for the same failure
  std::string text;
};
using Effect = std::variant<StartProgram, EndProgram, TellOperator>;
using Effects = std::vector<Effect>;

class ProgramWatch {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(10);
  // Patience with the first answer, before which an interpreter and its libraries are loaded.
  static constexpr Duration kStartPatience = std::chrono::seconds(60);
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(5);
  static constexpr int kReliable = 20;

  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] bool may_be_asked() const { return state_ == State::kReady; }
  // Why the program makes no decisions now; empty while it runs.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  enum class State { kWaiting, kStarting, kReady, kAsked };

  void on(const TimePassed& input, MonoTime now, Effects& out);
  void on(const ProgramStarted& input, MonoTime now, Effects& out);
  void on(const ViewShown& input, MonoTime now, Effects& out);
  void on(const DecisionHeard& input, MonoTime now, Effects& out);
  void on(const ProgramFailed& input, MonoTime now, Effects& out);
  void check_invariants() const;

  State state_ = State::kWaiting;
  MonoTime next_start_{};
  MonoTime asked_at_{};
  Duration pause_ = kFirstPause;
  int answers_ = 0;  // since the program was started
  // the last one that operators were told; empty: none since the program became reliable
  std::string last_failure_;
  std::string trouble_;
};

}  // namespace antdt::ctl::program
