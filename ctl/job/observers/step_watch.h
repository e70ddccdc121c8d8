// What the members tell of the steps of their generation (wire::StepHistory), on
// its way into the run's history.
//
// It is told more than once and by several members: here is found what is new,
// what cannot be is refused, and up to where all is kept. Pure; not durable. After
// a restart of the job daemon the members tell again what is not kept for certain.
//
//   begun, resumed ──hear──> heard up to a step ──kept──> the members may forget it
#pragma once

#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

class StepWatch {
 public:
  // A generation of `members` settled after `step`.
  void begin(Generation generation, std::size_t members, Step step);
  // This incarnation found it settled: what was heard before is not known.
  void resume(Generation generation, std::size_t members);

  // The runs to keep, in order. Steps of another generation are none of ours: no
  // run. An error says what cannot be; nothing of it is to be kept then. `step` is
  // how far its teller says that training is.
  [[nodiscard]] Result<std::vector<wire::StepRun>> hear(const wire::StepHistory& told, Step step);

  // How far it has heard of which generation.
  struct Mark {
    Generation generation;
    std::optional<Step> heard;
  };
  [[nodiscard]] Mark mark() const { return {generation_, heard_}; }
  // What was heard up to there is durable.
  void kept(const Mark& mark) {
    if (mark.generation == generation_ && mark.heard > kept_) kept_ = mark.heard;
  }
  // Every step up to this one is; 0: none that is known.
  [[nodiscard]] Step kept_through() const { return kept_.value_or(Step{}); }
  [[nodiscard]] Generation generation() const { return generation_; }  // 0: none

 private:
  [[nodiscard]] Status check(const wire::StepHistory& told, Step step) const;
  [[nodiscard]] Status check(const wire::StepRun& run) const;

  Generation generation_;
  std::size_t members_ = 0;
  std::optional<Step> heard_;  // without a gap up to here
  std::optional<Step> kept_;   // of that, durable
};

}  // namespace antdt::ctl
