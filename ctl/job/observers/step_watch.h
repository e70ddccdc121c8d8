// The steps that the members of a generation report (wire::StepHistory), on their way into the
// run's history.
//
// Steps are reported repeatedly and by several members. This class finds what is new, refuses what
// is impossible, and knows up to which step everything is stored. Pure; not durable. After a
// restart of the job daemon the members report again what may not be stored.
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
  // A generation of `members` members settled after `step`.
  void begin(Generation generation, std::size_t members, Step step);
  // This incarnation found the generation settled, and does not know what was heard before.
  void resume(Generation generation, std::size_t members);

  // Returns the runs to store, in order. Steps of another generation give no run. The error says
  // what is impossible; then nothing of the report may be stored. `step` is how far training is,
  // according to the member that reports.
  [[nodiscard]] Result<std::vector<wire::StepRun>> hear(const wire::StepHistory& told, Step step);

  // Up to which step of which generation it has heard.
  struct Mark {
    Generation generation;
    std::optional<Step> heard;
  };
  [[nodiscard]] Mark mark() const { return {generation_, heard_}; }
  // Everything that was heard up to this mark is durable.
  void kept(const Mark& mark) {
    if (mark.generation == generation_ && mark.heard > kept_) kept_ = mark.heard;
  }
  // Every step up to this one is durable; 0: none that is known.
  [[nodiscard]] Step kept_through() const { return kept_.value_or(Step{}); }
  [[nodiscard]] Generation generation() const { return generation_; }  // 0: none

 private:
  [[nodiscard]] Status check(const wire::StepHistory& told, Step step) const;
  [[nodiscard]] Status check(const wire::StepRun& run) const;

  Generation generation_;
  std::size_t members_ = 0;
  std::optional<Step> heard_;  // heard without a gap up to here
  std::optional<Step> kept_;   // durable up to here
};

}  // namespace antdt::ctl
