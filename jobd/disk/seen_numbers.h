// What a run's files tell of the numbers that it has used, for the day when the
// journal, which knows them, is lost.
//
// Lineages, generations, attempts and incarnations tell what is current from
// what is stale, so a new journal of the run begins above all that can have
// been used: the highest that is seen, and a margin for what came after it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "ctl/job/job_image.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::jobd {

struct SeenNumbers {
  Lineage lineage;
  Generation generation;
  Incarnation incarnation;
  std::map<WorkerId, Attempt> attempts;
  double seconds = 0;  // since the job began

  // Each takes what it can read and leaves the rest alone.
  void in_checkpoint_name(std::string_view name);  // "s0000000007-l1-g2-w0.1"
  void in_log_name(std::string_view name);         // "w3.2.err", "s0.1.out"
  void in_event(std::string_view line);            // of events.jsonl
  void in_summary(std::string_view json);
  void in_ledger(const shard_server::Ledger& ledger);
  void at_lineage(Lineage other);
  void at_attempt(WorkerId worker, Attempt attempt);
};

// Everything that the run's directory shows but the ledgers of checkpoints.
[[nodiscard]] SeenNumbers seen_in(const std::string& run_dir);

// The next journal's first incarnation.
[[nodiscard]] Incarnation incarnation_above(const SeenNumbers& seen);
// What a job daemon of this run would remember if all of its workers and servers
// had ended: to be resumed, from a checkpoint, since nobody holds the training
// state.
[[nodiscard]] ctl::JobImage image_above(const SeenNumbers& seen, std::uint32_t workers,
                                        std::uint32_t servers);

}  // namespace antdt::jobd
