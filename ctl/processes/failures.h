// What a process's end means, how many ends of a kind a job bears, and which
// of several was the cause. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctl/processes/worker_process.h"

namespace antdt::ctl {

// `made_progress`: a step of this job's program was made, at some time and by
// any of its processes; a program that cannot say so has run for a while.
[[nodiscard]] FailureClass classify(const WorkerProcess& w, bool made_progress);

// Whether what the process was working on may be why it died: a SIGKILL without
// evidence of memory, a lost host or a hang says nothing of the records.
[[nodiscard]] bool records_are_suspect(const WorkerProcess& w, FailureClass cls);

// "was killed by signal 9 (SIGKILL)": the end of a sentence about the process.
[[nodiscard]] std::string describe_exit(const WorkerProcess& w);
// The same where its class is known: of one that was lost with its host nobody saw an exit.
[[nodiscard]] std::string describe_end(const WorkerProcess& w, FailureClass cls);

// How many failures of each class the job still bears. A failure takes one; one
// comes back after each `refill` of training.
class Budgets {
 public:
  Budgets() = default;
  Budgets(std::map<std::string, std::uint32_t> limits, Duration refill)
      : limits_(std::move(limits)), refill_s_(to_seconds(refill)) {}

  struct Image {
    std::vector<double> used;  // by FailureClass
    double trained_s = 0;      // at the last change
    template <class Self, class V>
    static void fields(Self& m, V& v) {
      v("used", m.used);
      v("trained_s", m.trained_s);
    }
  };
  // Takes one; false when there was none left. `trained_s`: seconds of training
  // so far, in which steps were made.
  [[nodiscard]] bool take(FailureClass cls, double trained_s);
  [[nodiscard]] std::uint32_t limit(FailureClass cls) const;
  // How many it would give now.
  [[nodiscard]] std::uint32_t left(FailureClass cls, double trained_s) const;
  [[nodiscard]] const Image& image() const { return image_; }
  void restore(Image image) { image_ = std::move(image); }

 private:
  // What has come back since the last change.
  [[nodiscard]] double refilled(double trained_s) const;

  std::map<std::string, std::uint32_t> limits_;
  double refill_s_ = 600;
  Image image_;
};

// Training goes on: of the failure's cause its beginning is kept, without most of the last lines.
void shorten_cause(FailureRecord& failure);

// Of one incident, the failure that the others follow from: by class first
// (victims are victims). Among equals the first by time if they were on one
// host, or are further apart than exits of different hosts can be told apart;
// otherwise the first that was heard of. failures.size() if there is none.
[[nodiscard]] std::size_t first_cause(const std::vector<FailureRecord>& failures,
                                      std::uint64_t incident);

}  // namespace antdt::ctl
