// The lines between a job and a solution of its user's own: a view out, a decision
// back, each one line of JSON. Pure. docs/own-solution.md is the specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/result.h"
#include "ctl/control/controller.h"

namespace antdt::ctl {

// Of a view and of a decision; changes only when what is there changes its meaning.
inline constexpr int kSolutionLines = 1;

// Without a line break. `time_s` is the job's time; now: of the view.
[[nodiscard]] std::string view_line(const ClusterView& view, std::uint64_t number, double time_s,
                                    MonoTime now);

// The answer to view `number`, which is `view`. Every worker in it is one of the view's,
// and numbers are in the range of what they mean. The error says what is wrong in words
// for the program's author: "said …".
[[nodiscard]] Result<Decision> parse_decision(std::string_view line, const ClusterView& view,
                                              std::uint64_t number);

// How long a line may be that answers this view, in bytes.
[[nodiscard]] std::size_t longest_decision(const ClusterView& view);

}  // namespace antdt::ctl
