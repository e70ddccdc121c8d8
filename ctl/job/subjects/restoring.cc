#include "ctl/job/subjects/restoring.h"

#include <utility>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

void Restoring::on(const CheckpointFound& e, Work& work) {
  // the job began to end while the checkpoint was looked for
  if (parts_.lifecycle.outcome()) return;
  if (parts_.group.tries_again(e, work)) return;
  // Nobody is left who could report how far the dead members were.
  parts_.suspicions.add_all_of_members(work);
  if (parts_.suspicions.end_job_if_shared(work)) return;
  const auto begins = parts_.group.beginning(e);
  const Lineage lineage{parts_.membership.lineage().value + 1};
  const Status rewound =
      begins ? parts_.records.rewind(lineage, begins->ledger, begins->accounts, work)
             : Status(tl::unexpected<Error>(begins.error()));
  if (!rewound) {
    return work.then(lifecycle::JobFailed{ExitClass::kCheckpoint, 1,
                                          fmt::format("checkpoint {} does not fit this job: {}",
                                                      e.directory, rewound.error().message)});
  }
  parts_.checkpoints.went_back(work);
  const shard_server::Phase& phase = parts_.records.ledger().phase();
  parts_.series.go_back(phase, work.now);
  work.save_image();
  // If the journal is lost, the number in the event tells that this lineage was used.
  work.note(
      "restored",
      fmt::format("{}: lineage {} begins {}", begins->who, lineage,
                  e.directory.empty() ? "at the start, there is no checkpoint"
                                      : fmt::format("from {} (step {})", e.directory, e.step)),
      fmt::format(R"("lineage":{})", lineage));
  work.then(lifecycle::CheckpointRestored{phase.number, parts_.records.ledger().records(),
                                          e.step.value,
                                          parts_.records.accounts().cut(phase.epoch.value)});
  work.then(membership::TrainingBegun{lineage, e.directory});
  parts_.group.begin(e.directory, begins->version, work);
}

void Restoring::on(const CheckpointFilesMoved& /*e*/, Work& work) {
  parts_.group.state_moves(work);
  work.then(lifecycle::CheckpointBytesMoved{});
}

}  // namespace antdt::ctl::job
