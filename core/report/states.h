// The states that a report names. Empty if this version does not know the name.
#pragma once

#include <optional>

#include "core/action_outcome.h"
#include "core/job_states.h"
#include "core/report/job_report.h"

namespace antdt::report {

[[nodiscard]] inline std::optional<JobState> state_of(const Status& status) {
  return by_name<JobState>(status.state);
}
[[nodiscard]] inline std::optional<JobEnd> end_of(const Summary& summary) {
  return by_name<JobEnd>(summary.state);
}
[[nodiscard]] inline std::optional<ProcessState> state_of(const WorkerStatus& worker) {
  return by_name<ProcessState>(worker.state);
}
[[nodiscard]] inline std::optional<ProcessState> state_of(const ServerStatus& server) {
  return by_name<ProcessState>(server.state);
}
[[nodiscard]] inline std::optional<ActionOutcome> outcome_of(const Action& action) {
  return by_name<ActionOutcome>(action.outcome);
}

}  // namespace antdt::report
