// Whether members go on sharing their steps, or each computes its own part alone. Where steps are
// short, to ask and to compute small runs costs more than sharing evens out, so steps of both kinds
// are compared. A machine without effects, of the member of rank 0, which tells the others in its
// slot (step_slot.h) what kind the next step is.
//
//   sharing ──(asks have cost a part of what a trial may cost, or many steps are over)──> trying
//   alone   ──(many steps are over, or steps became slower)───────────────────> trying
//   trying  ──(one kind has taken clearly longer, or no difference is found)──> sharing, alone
//
// A trial has blocks of steps of either kind: shared, alone, alone, shared, and so on. It ends when
// one kind has taken the time of `stake` steps more than as many steps of the other. So it costs
// about that much however large the difference is, and noise seldom decides (a sequential test:
// Wald, "Sequential Tests of Statistical Hypotheses", 1945). If none has after `most` steps of each
// kind, steps are shared.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/clock.h"

namespace antdt::worker::sharing {

struct TrialRules {
  std::uint32_t settling = 16;  // the first steps of a generation, which tell nothing
  std::uint32_t block = 8;      // steps of one kind in a row
  double stake = 4;             // in steps
  std::uint32_t most = 512;     // steps of each kind in a trial
  // The first trial is when asks have cost the time of so many steps, and after `first` steps at
  // the latest. Each later one is after twice as many as the one before, up to `rarest`, and not
  // before `rest` times the steps are over that the last trial has cost.
  double dear = 2;
  double first = 200;
  double rarest = 20'000;
  double rest = 400;
  // Members that compute alone try again when the mean of `watched` steps is so many times that
  // of the trial.
  double slower = 1.15;
  std::uint32_t watched = 16;
  // A single step counts as at most so many times the usual one.
  double outlier = 3;
};

// A step that tells something about its kind.
struct StepTimes {
  bool shared = true;
  Duration took{};   // from the end of the step before to its end
  Duration asked{};  // of it: how long a member waited for its desk's answers, on average
};

// How a trial ended.
struct Choice {
  bool shares = true;
  Duration shared{}, alone{};  // how long a step of either kind took, on average
  bool operator==(const Choice&) const = default;
};

class ShareTrial {
 public:
  explicit ShareTrial(const TrialRules& rules = {});

  void concluded(const StepTimes& step);
  // Whether the next step for which the members do not know it yet is shared.
  [[nodiscard]] bool shares() const;
  [[nodiscard]] const std::optional<Choice>& newest() const { return newest_; }

 private:
  struct Kind {  // steps of one kind
    std::uint32_t steps = 0;
    double sum_s = 0;
    void add(double seconds) {
      ++steps;
      sum_s += seconds;
    }
    [[nodiscard]] double mean_s() const { return steps > 0 ? sum_s / steps : 0; }
  };
  struct Sharing {
    Kind steps = {};
    double asked_s = 0;
  };
  struct Alone {
    double usual_s = 0;       // a step of the trial
    std::uint32_t steps = 0;  // since then
    Kind watched = {};        // the newest of them
  };
  struct Trying {
    double usual_s = 0;  // a step before the trial
    Kind shared = {}, alone = {};
    double took_s = 0;  // of all of them, outliers as they were
  };
  using State = std::variant<Sharing, Trying, Alone>;
  [[nodiscard]] State after(Sharing state, const StepTimes& step);
  [[nodiscard]] State after(Trying state, const StepTimes& step);
  [[nodiscard]] State after(Alone state, const StepTimes& step);
  [[nodiscard]] State end(const Trying& trial, double gained);

  const TrialRules rules_;
  State state_;
  std::uint32_t settling_;  // so many steps are still passed over
  double distance_;         // steps until the next trial
  std::optional<Choice> newest_;
};

}  // namespace antdt::worker::sharing
