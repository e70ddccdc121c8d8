// What has failed, how many failures are tolerated, and what the cause was. All failures until
// training goes on are one incident, which has one first cause (failures.h). Each failure takes one
// from the budget of its class, and training refills the budgets.
//
// Durable: failures that are not past yet, the number of the incident, budgets, and the training
// time that refills them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "ctl/processes/failures.h"
#include "ctl/processes/worker_process.h"

namespace antdt::ctl {

class Incidents {
 public:
  // how many failures are kept, including those of past incidents
  static constexpr std::size_t kMostFailures = 16;
  static constexpr std::size_t kMostOfAnIncident = 64;

  // `hang_after`: the longest that a step may take.
  Incidents(std::map<std::string, std::uint32_t> budgets, Duration refill, Duration hang_after);

  struct Image {
    std::vector<FailureRecord> failures;
    std::uint64_t incident = 1;  // the incident to which failures belong now
    Budgets::Image budgets;
    double trained_s = 0;
    bool made_progress = false;
    std::string over_budget;  // names the budget that was exceeded by the failure that ends the job
  };
  [[nodiscard]] Image image() const;
  void restore(Image image);

  // The newest failures, of the present incident and a few earlier ones; the others were taken out.
  [[nodiscard]] const std::vector<FailureRecord>& failures() const { return image_.failures; }
  // Takes out the failures to which nothing more will be added, or that are too many to keep.
  [[nodiscard]] std::vector<FailureRecord> take_old();
  [[nodiscard]] std::uint32_t budget_left(FailureClass cls) const {
    return budgets_.left(cls, image_.trained_s);
  }

  // A step was made, or records were committed. True if it is the first of the job. `late`: it is
  // heard after its generation has ended, so the recovery is still to come.
  [[nodiscard]] bool progress(MonoTime now, bool late);
  // Programs of which no steps are known run without trouble.
  void run_well(MonoTime now);
  [[nodiscard]] bool made_progress() const { return image_.made_progress; }

  void record(const WorkerProcess& worker, const std::string& host_name, FailureClass cls,
              double now_s);
  // Whether one more failure of this class is tolerated. Several hosts lost together count as one.
  [[nodiscard]] bool take_budget(FailureClass cls);
  // The budget was exceeded, which the outcome names with the cause.
  void exceed_budget(FailureClass cls);
  // An operator who resumes the run restores all budgets.
  void forgive();
  // The class of a failure among processes that do not report that they lost a peer. Those that end
  // after the first one are its victims, unless they were killed; in that case those that ended
  // before are the victims.
  [[nodiscard]] FailureClass class_in_gang(FailureClass cls, const WorkerProcess& worker,
                                           double now_s);

  [[nodiscard]] bool is_open() const;  // whether the present incident has failures
  void went_back(std::uint64_t step);  // training will go on from there
  void close();                        // the next failure belongs to another incident
  void end(double now_s);              // training goes on; closes the incident
  // The first cause of the present incident; null if no process reported one.
  [[nodiscard]] const FailureRecord* first_cause() const;
  [[nodiscard]] const std::string& over_budget() const { return image_.over_budget; }

 private:
  void count_training(MonoTime now, bool late);

  Image image_;  // image() fills in the budgets
  Budgets budgets_;
  Duration step_gap_;
  std::optional<MonoTime> last_progress_;
  bool failed_since_ = false;  // a process failed, and no progress after it is known
};

}  // namespace antdt::ctl
