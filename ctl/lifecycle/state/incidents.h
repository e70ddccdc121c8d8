// What has failed, how often it may, and what was the cause. Failures until training goes on are
// one incident, which has one first cause (failures.h); each takes one of the budget of its class,
// which training refills.
//
// Durable: failures that are not past yet, the number of the incident, budgets, and the time of
// training that refills them.
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
  static constexpr std::size_t kMostFailures = 16;  // that stay, of incidents that are over too
  static constexpr std::size_t kMostOfAnIncident = 64;

  Incidents(std::map<std::string, std::uint32_t> budgets, Duration refill)
      : budgets_(std::move(budgets), refill) {}

  struct Image {
    std::vector<FailureRecord> failures;
    std::uint64_t incident = 1;  // the one that failures belong to now
    Budgets::Image budgets;
    double trained_s = 0;
    bool made_progress = false;
    std::string over_budget;  // which budget a failure that ends the job exceeded
  };
  [[nodiscard]] Image image() const;
  void restore(Image image);

  // The newest, of the present incident and a few before; the others were taken.
  [[nodiscard]] const std::vector<FailureRecord>& failures() const { return image_.failures; }
  // Failures that nothing more will be said of, or that are too many to wait for it.
  [[nodiscard]] std::vector<FailureRecord> take_old();
  [[nodiscard]] std::uint32_t budget_left(FailureClass cls) const {
    return budgets_.left(cls, image_.trained_s);
  }

  // A step was made. True: the first of the job.
  [[nodiscard]] bool progress(MonoTime now);
  [[nodiscard]] bool made_progress() const { return image_.made_progress; }

  void record(const WorkerProcess& worker, const std::string& host_name, FailureClass cls,
              double now_s);
  // One failure more of this class can be borne. Hosts lost together are one.
  [[nodiscard]] bool take_budget(FailureClass cls);
  // It could not: that is said with the cause.
  void exceed_budget(FailureClass cls);
  // Whoever resumes the run lets it fail as often as at first.
  void forgive();
  // Of processes that do not say that they only lost a peer: those that end after the first are its
  // victims, unless they were killed, which makes those before them the victims.
  [[nodiscard]] FailureClass class_in_gang(FailureClass cls, const WorkerProcess& worker,
                                           double now_s);

  [[nodiscard]] bool is_open() const;  // the present incident has failures
  void end(double now_s);              // training goes on
  // Of the present incident; null: nobody said why.
  [[nodiscard]] const FailureRecord* first_cause() const;
  [[nodiscard]] const std::string& over_budget() const { return image_.over_budget; }

 private:
  Image image_;  // budgets are filled in by image()
  Budgets budgets_;
  std::optional<MonoTime> last_progress_;
};

}  // namespace antdt::ctl
