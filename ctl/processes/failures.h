// What a process's end means, how many ends of a class a job tolerates, and which of several ends
// was the cause. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/role_protocol.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl {

// `made_progress`: some process of this job's program made a step at some time or, if the program
// cannot report steps, has run for a while. The exit codes of those that speak another protocol
// mean less (docs/worker-client.md).
[[nodiscard]] FailureClass classify(const WorkerProcess& w, bool made_progress,
                                    Protocol protocol = Protocol::kAntdt);

// Whether the records that the process was working on may be why it died. A SIGKILL without
// evidence of memory, a lost host, data that cannot be read and a hang say nothing about the
// records.
[[nodiscard]] bool records_are_suspect(const WorkerProcess& w, FailureClass cls);

// "was killed by signal 9 (SIGKILL)": the end of a sentence about the process. The class is that of
// classify(), or kHost: nobody saw the exit of a process that was lost with its host.
[[nodiscard]] std::string describe_end(const WorkerProcess& w, FailureClass cls);

// How many more failures of each class the job tolerates. Each failure takes one from the budget,
// and one comes back after each `refill` of training.
class Budgets {
 public:
  Budgets() = default;
  Budgets(std::map<std::string, std::uint32_t> limits, Duration refill)
      : limits_(std::move(limits)), refill_s_(to_seconds(refill)) {}

  struct Image {
    std::vector<double> used;  // by FailureClass
    double trained_s = 0;      // training time at the last change
    template <class Self, class V>
    static void fields(Self& m, V& v) {
      v("used", m.used);
      v("trained_s", m.trained_s);
    }
  };
  // Takes one; false if none was left. `trained_s`: seconds of training so far, in which steps were
  // made.
  [[nodiscard]] bool take(FailureClass cls, double trained_s);
  [[nodiscard]] std::uint32_t limit(FailureClass cls) const;
  // How many failures are left now.
  [[nodiscard]] std::uint32_t left(FailureClass cls, double trained_s) const;
  [[nodiscard]] const Image& image() const { return image_; }
  void restore(Image image) { image_ = std::move(image); }

 private:
  // How many have come back since the last change.
  [[nodiscard]] double refilled(double trained_s) const;

  std::map<std::string, std::uint32_t> limits_;
  double refill_s_ = 600;
  Image image_;
};

// Training goes on: only the beginning of the failure's cause is kept, without most of the last
// lines.
void shorten_cause(FailureRecord& failure);

// Finds the failure of one incident from which the others follow. Failures are compared by class
// first (victims are victims). Within a class, the earliest is the cause if they were on one host,
// or are further apart than the clocks of different hosts may differ; otherwise it is the failure
// that was heard of first. failures.size() if there is none.
[[nodiscard]] std::size_t first_cause(const std::vector<FailureRecord>& failures,
                                      std::uint64_t incident);

}  // namespace antdt::ctl
