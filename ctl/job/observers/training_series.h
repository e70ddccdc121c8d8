// The progress of training, and the report of each epoch. An observer, which is shown phases and
// the members' progress. Pure. Epochs are durable: the last two in the job's image, earlier ones
// once each as a record of their own (past.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/training_messages.h"
#include "ctl/job/job_image.h"
#include "ctl/job/observers/progress_view.h"
#include "ctl/job/report.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl {

class TrainingSeries {
 public:
  // `members_add_up`: each member counts what it did itself, as workers of parameter servers do;
  // otherwise each member counts what all did.
  explicit TrainingSeries(bool members_add_up) : members_add_up_(members_add_up) {}

  // `seconds`: the job's, as of what is restored.
  void restore(const std::vector<ImageEpoch>& past, const std::vector<ImageEpoch>& present,
               const std::optional<ImageTraining>& training, double seconds);
  // After a restart of the job daemon in the middle of a phase.
  void resume_phase(std::uint64_t phase, MonoTime now);

  // A phase opens; `before` was the ledger's phase until now, with so many records committed.
  // Returns what to report of an epoch whose training is over with that.
  [[nodiscard]] std::optional<std::string> open_phase(const wire::PhaseStart& start,
                                                      const shard_server::Phase& before,
                                                      std::uint64_t committed, MonoTime now);
  void hear(Member member, const wire::Progress& progress, std::uint64_t open_phase, MonoTime now);
  // Returns what to report of a loss that is not finite, once a phase.
  [[nodiscard]] std::optional<std::string> diverged(const wire::Progress& progress);
  // Members have compared shared steps with others. Returns what to report of it, once.
  [[nodiscard]] std::optional<std::string> compared(const wire::StepKinds& kinds);
  // A member has trained the whole epoch. Returns the same, once.
  [[nodiscard]] std::optional<std::string> member_done(Epoch epoch, MonoTime now);
  // An evaluation is over. Returns what to report of it.
  [[nodiscard]] std::string evaluated(Epoch epoch, const EpochReport::Eval& eval);
  // Training goes on from a checkpoint of this phase.
  void go_back(const shard_server::Phase& phase, MonoTime now);
  // The training has ended with so many epochs: a later one was opened, and nothing of it trained.
  void end(Epoch epochs);
  // The job ends in this phase, with so many of its records committed.
  void cut_short(const wire::PhaseStart& open, std::uint64_t committed, MonoTime now);

  // The newest evaluation that is over.
  [[nodiscard]] std::optional<wire::Evaluated> newest_evaluation() const;
  [[nodiscard]] const ProgressView& progress() const { return progress_; }
  [[nodiscard]] const std::vector<EpochReport>& epochs() const { return epochs_; }
  [[nodiscard]] ImageEpoch image_of(std::size_t epoch) const;
  // `seconds`: the job's, now.
  [[nodiscard]] ImageTraining image(double seconds, MonoTime now) const;

 private:
  // What all members did in this phase. Of one message to the next only one member's part changes,
  // so the sums are kept; adding all parts anew after as many messages as there are members removes
  // what rounding has left in them.
  struct Sums {
    Step step;
    std::uint64_t samples = 0;
    double loss = 0, weight = 0;
    void add(const wire::Progress& part);
    void take_out(const wire::Progress& part);
  };
  void add_up(Member member, const wire::Progress& progress);
  void forget_members();
  // Fills in how far training is.
  void fill(Epoch epoch, std::uint64_t committed, MonoTime now);
  [[nodiscard]] std::optional<std::string> close(Epoch epoch, std::uint64_t committed,
                                                 MonoTime now);

  bool members_add_up_;
  ProgressView progress_;
  std::map<Member, wire::Progress> own_;  // this phase's progress of each member, if members add up
  Sums sums_;                             // of own_
  std::size_t heard_ = 0;                 // messages since own_ was added up as a whole
  bool saw_begin_ = true;  // of the phase, so what a member's first report counts is recent
  std::vector<EpochReport> epochs_;
  std::optional<wire::StepKinds> kinds_;
  std::uint64_t diverged_in_ = 0;  // the last phase of which that was reported
};

}  // namespace antdt::ctl
