// The lines between a job and a user's own solution: the view goes out and a decision comes back,
// each as one line of JSON. Pure. docs/own-solution.md is the specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/result.h"
#include "ctl/control/controller.h"

namespace antdt::ctl {

// Version of views and decisions. It changes only when the meaning of an existing field changes.
inline constexpr int kSolutionLines = 1;

// The view as a line without its line break. `time_s` is the job's time; `now` is the time of the
// view.
[[nodiscard]] std::string view_line(const ClusterView& view, std::uint64_t number, double time_s,
                                    MonoTime now);

// Reads the answer to view number `number`, which is `view`. Every worker that it names must be in
// the view, and every number must be in its range. The error says what is wrong in words for the
// program's author: "said …".
[[nodiscard]] Result<Decision> parse_decision(std::string_view line, const ClusterView& view,
                                              std::uint64_t number);

// The longest allowed answer to this view, in bytes.
[[nodiscard]] std::size_t longest_decision(const ClusterView& view);

}  // namespace antdt::ctl
