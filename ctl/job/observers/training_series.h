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

  void restore(const std::vector<ImageEpoch>& past, const std::vector<ImageEpoch>& present);
  // After a restart of the job daemon in the middle of a phase.
  void resume_phase(std::uint64_t phase, MonoTime now) { progress_.begin_phase(phase, now); }

  // A phase opens; `before` was the ledger's phase until now. Returns what to report of an epoch
  // whose training is over with that.
  [[nodiscard]] std::optional<std::string> open_phase(const wire::PhaseStart& start,
                                                      const shard_server::Phase& before,
                                                      MonoTime now);
  void hear(Member member, const wire::Progress& progress, std::uint64_t open_phase, MonoTime now);
  // A member has trained the whole epoch. Returns the same, once.
  [[nodiscard]] std::optional<std::string> member_done(Epoch epoch, MonoTime now);
  // An evaluation is over. Returns what to report of it.
  [[nodiscard]] std::string evaluated(Epoch epoch, const EpochReport::Eval& eval);
  // Training goes on from a checkpoint of this phase.
  void go_back(const shard_server::Phase& phase, MonoTime now);
  // The job ends in this phase.
  void cut_short(const wire::PhaseStart& open, MonoTime now);

  // The newest evaluation that is over.
  [[nodiscard]] std::optional<wire::Evaluated> newest_evaluation() const;
  [[nodiscard]] const ProgressView& progress() const { return progress_; }
  [[nodiscard]] const std::vector<EpochReport>& epochs() const { return epochs_; }
  [[nodiscard]] ImageEpoch image_of(std::size_t epoch) const;

 private:
  void fill(Epoch epoch, MonoTime now);  // fills in how far training is
  [[nodiscard]] std::optional<std::string> close(Epoch epoch, MonoTime now);

  bool members_add_up_;
  ProgressView progress_;
  std::map<Member, wire::Progress> own_;  // this phase's progress of each member, if members add up
  std::vector<EpochReport> epochs_;
};

}  // namespace antdt::ctl
