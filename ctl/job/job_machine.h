// One job as a single state machine: it connects lifecycle, membership or parameter servers,
// ledger, accounts, monitor and controller.
//
//                       ┌───────────── next item ──────────────┐
//   Input ──> queue ────┴─> a machine takes it ──> its effects ┴──> Effects for the shell
//
// It is the coordinator. An input goes to the machine or the subject (subjects/) that handles it,
// and what follows is put into a queue (work.h) that is processed until it is empty. The workers
// that train together are one Group (group/group.h), in a collective or with servers. What only
// observes the job is in observers/.
//
// A value without I/O: only step(input, now, out) changes it. The job daemon feeds it what arrives
// and carries out its effects in order: every PersistRecord of a turn, and image_if_changed() after
// them, are durable before anything else of that turn is sent. Recovery builds it from the journal
// again (open). The simulation runs the same object in virtual time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/job/job_events.h"
#include "ctl/job/job_image.h"
#include "ctl/job/parts.h"
#include "ctl/job/report.h"
#include "ctl/job/work.h"
#include "shard_server/journal/journal.h"

namespace antdt::ctl::job {

class JobMachine {
 public:
  // The error says that the journal cannot be read, or is of other data.
  [[nodiscard]] static Result<JobMachine> open(JobMachineConfig config,
                                               std::unique_ptr<Solution> solution,
                                               const shard_server::JournalContent& journal);
  // Whether the journal knew the job. Then the first input is IncarnationRecovered or
  // ResumeOrdered, otherwise JobCreated.
  [[nodiscard]] bool known() const { return known_; }

  // Appends to `out`.
  void step(const Input& input, MonoTime now, Effects& out);
  // The image record of this turn, if the image changed.
  [[nodiscard]] std::optional<std::string> image_if_changed();
  // Sections of a snapshot, in the form that open() takes.
  [[nodiscard]] std::vector<shard_server::JournalEntry> snapshot() const;

  // Whether an operator's request can be granted. The error says why it cannot.
  template <class Wish>
  [[nodiscard]] Status check(const Wish& wish) const {
    return parts_->operators.check(wish);
  }
  [[nodiscard]] Status check_approve(std::uint64_t number) const {
    return parts_->controlling.check_approve(number);
  }

  // What the user's program that decides should see now. Null while the effect of its last decision
  // is not in force and measured.
  [[nodiscard]] const ClusterView* view_to_decide(MonoTime now) const;

  [[nodiscard]] JobReport report() const;
  [[nodiscard]] Duration control_interval() const { return parts_->controller.tick_interval(); }
  [[nodiscard]] const wire::Plan& plan() const { return parts_->controller.plan(); }
  [[nodiscard]] const Lifecycle& lifecycle() const { return parts_->lifecycle; }
  [[nodiscard]] const Membership& membership() const { return parts_->membership; }
  [[nodiscard]] const servers::ServerGroup& server_group() const { return parts_->servers; }
  // Generation of the workers that train together.
  [[nodiscard]] Generation generation() const { return parts_->group.generation(); }
  [[nodiscard]] const shard_server::Ledger& ledger() const { return parts_->records.ledger(); }
  [[nodiscard]] const shard_server::Accounts& accounts() const {
    return parts_->records.accounts();
  }
  [[nodiscard]] bool ended() const { return parts_->ended; }
  [[nodiscard]] StepWatch::Mark history_mark() const { return parts_->history.mark(); }

 private:
  JobMachine(std::unique_ptr<Parts> parts, bool known) : parts_(std::move(parts)), known_(known) {}

  // Processes the first item of a step.
  void take(const Input& input, Work& work);
  void keep_clock(Work& work);
  void begin(const IncarnationRecovered& e, Work& work);
  void begin(const ResumeOrdered& e, Work& work);
  void go_on(const RecoveryHeard& e, Work& work);
  void go_on(const RecoveryPlanned& e, Work& work);
  // Processes a later item.
  void take(Item& item, Work& work);
  void take(FollowUp& item, Work& work);

  std::unique_ptr<Parts> parts_;
  Agenda agenda_;  // empty between steps; kept so that its memory is reused
  bool known_ = false;
  bool image_changed_ = false;
  MonoTime clock_kept_{};  // when the job's clock was last written
};

}  // namespace antdt::ctl::job

namespace antdt::ctl {
using job::JobMachine;
using job::JobMachineConfig;
}  // namespace antdt::ctl
