// Carries out on the rows of a server what staged_steps.h decides. Part of a Server (server.h),
// which has checked the parts of a message against its tables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "trainer/ps/rows/rows_before.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps/steps/staged_steps.h"

namespace antdt::ps {

class StepServer {
 public:
  // How a message is answered. Current: the rows are as the sender wants them, so it is answered
  // with them, before the next message is taken.
  struct Current {};
  struct Staged {};
  using Answer = std::variant<Current, Staged, steps::RefuseStale, steps::RefuseUnfit>;
  struct Outcome {
    // The state of the rows is to be saved before the next message is taken.
    std::optional<steps::WriteCut> cut;
    Answer answer;
  };

  explicit StepServer(Step after) : steps_(after) {}

  // `store`: always the same rows.
  [[nodiscard]] Outcome take(const steps::Input& message, Store& store);

  [[nodiscard]] const StagedSteps& steps() const { return steps_; }
  // How often a step was taken back.
  [[nodiscard]] std::uint64_t taken_back() const { return taken_back_; }

 private:
  void apply(const steps::ApplyStep& step, Store& store);

  StagedSteps steps_;
  RowsBefore before_;  // the last step, while it may be taken back
  std::uint64_t taken_back_ = 0;
};

}  // namespace antdt::ps
