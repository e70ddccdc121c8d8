// When the program of a user's own solution is started, asked and ended. A value:
// the shell (cmd/antdt-jobd/own_program.h) tells it what happened and does what it
// wants; whatever the program does, the job only ever has no decision from it.
//
//   waiting --Tick, its time has come--> starting: start it
//   starting --Started--> ready
//   ready --Asked--> asked --Answered--> ready
//   asked --Tick, kPatience later--> as Failed
//   any --Failed--> waiting, each time for longer: end it, say why
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "core/clock.h"

namespace antdt::ctl {

class ProgramWatch {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(10);
  // For its first answer: an interpreter and its libraries are loaded.
  static constexpr Duration kStartPatience = std::chrono::seconds(60);
  static constexpr Duration kFirstWait = std::chrono::seconds(1);
  static constexpr Duration kLongestWait = std::chrono::minutes(5);
  // After so many answers in a row what it did before counts no more.
  static constexpr int kReliable = 20;

  struct Tick {};
  struct Started {};
  struct Asked {};
  struct Answered {};
  struct Failed {
    std::string why;  // the end of a sentence that begins with "the program"
  };
  using Event = std::variant<Tick, Started, Asked, Answered, Failed>;

  struct Wish {
    bool start = false;
    bool end = false;                 // it, and what it has started
    std::optional<std::string> news;  // for people, once for the same reason
  };
  [[nodiscard]] Wish step(const Event& event, MonoTime now);

  [[nodiscard]] bool may_be_asked() const { return state_ == State::kReady; }
  [[nodiscard]] bool asked() const { return state_ == State::kAsked; }
  // Why nobody decides now; empty: it runs.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  enum class State { kWaiting, kStarting, kReady, kAsked };
  [[nodiscard]] Wish fail(const std::string& why, MonoTime now);

  State state_ = State::kWaiting;
  MonoTime next_start_{};
  MonoTime asked_at_{};
  Duration wait_ = kFirstWait;
  int answers_ = 0;  // since it was started
  std::string said_;
  std::string trouble_;
};

}  // namespace antdt::ctl
