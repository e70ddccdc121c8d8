// The time of a step under each way of synchronisation, and which way is recommended. Pure.
//
// A trial, a short run of the job on one host, tells what computing and processing messages cost
// there, with all the processes that share the host's cores. What messages cost on links between
// hosts is computed (link_cost.h) and added. docs/synchronisation/plan.md has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/measured.h"
#include "launcher/plan/strategies.h"

namespace antdt::launcher::plan {

struct Prediction {
  Strategy strategy{};
  std::uint32_t servers = 0;
  // Of a step, in which all workers together train one global batch. Their sum is step_s.
  double compute_s = 0;   // the mean worker's own work
  double exchange_s = 0;  // messages and their processing, where they are not hidden by computing
  double waiting_s = 0;   // of the mean worker for the slowest
  double step_s = 0;
  double error = 0;  // of its trial, as Trial::error
  double samples_per_s = 0;
  bool computed_only = false;  // no trial was made of it: the formula alone
  bool offered = true;         // it is recommended if it is the best one
  // Under gaia, of a message's bytes. If it was not measured, step_s is that of the larger one.
  struct Range {
    double least = 0, most = 0;
  };
  std::optional<Range> share = std::nullopt;
  std::optional<Range> step_range_s = std::nullopt;
  // A trial was made with this number of workers and of servers on one host, and no link was added.
  bool as_tried = false;
  std::string unknown = {};  // why there is no prediction; empty: there is one
  [[nodiscard]] bool known() const { return unknown.empty(); }
  [[nodiscard]] bool may_be_recommended() const { return known() && offered; }
};

struct Plan {
  std::vector<Prediction> predictions;     // by StrategyTable, then by number of servers
  std::optional<std::size_t> recommended;  // an index of predictions; empty: none can be used
  std::vector<std::string> reasons;        // sentences
  std::vector<std::string> caveats;        // what is not known, and what follows from that
};

[[nodiscard]] Plan plan_of(const Measured& measured);

// What messages of gaia had of a dense one's bytes wherever that was measured
// (docs/results/gaia.md), for plans that cannot measure it.
inline constexpr Prediction::Range kUsualShare = {0.05, 0.30};

// How much slower than the fastest one a way may be that changes less of what is trained, to be
// recommended in place of the fastest.
inline constexpr double kAsFast = 1.05;
// By which part the steps of two equal ways may seem to differ: twice the standard errors of their
// trials, beyond which one case in twenty is.
[[nodiscard]] double error_of_ratio(const Prediction& one, const Prediction& other);

}  // namespace antdt::launcher::plan
