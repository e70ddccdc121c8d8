// How many actions and failures a job has had. A report has only the newest of them, so what is new
// in each report is counted. A job daemon that is started again begins with those that are kept:
// the counts may become smaller then, which Prometheus takes for a new beginning. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ctl/job/report.h"

namespace antdt::ctl {

class PastCounts {
 public:
  void see(const JobReport& report);

  // By kind and outcome.
  [[nodiscard]] const std::map<std::pair<std::string, std::string>, std::uint64_t>& actions()
      const {
    return actions_;
  }
  // By class; those that never happened are there, too.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& failures() const { return failures_; }

 private:
  using FailureKey = std::tuple<double, WorkerId, Attempt, std::uint8_t>;

  std::map<std::pair<std::string, std::string>, std::uint64_t> actions_;
  std::uint64_t newest_action_ = 0;
  std::map<std::string, std::uint64_t> failures_;
  std::set<FailureKey> known_;  // the failures in the last report
};

}  // namespace antdt::ctl
