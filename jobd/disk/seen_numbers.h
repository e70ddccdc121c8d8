// The numbers that a run has used, as far as its files show them, for the case that the journal is
// lost.
//
// Lineages, generations, attempts and incarnations tell the present from the stale. So a new
// journal of the run begins above every number that can have been used: above the highest that is
// seen, plus a margin for what came after it.
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

  // Each function takes the numbers that it finds in the text and ignores the rest.
  void in_checkpoint_name(std::string_view name);  // "s0000000007-l1-g2-w0.1"
  void in_log_name(std::string_view name);         // "w3.2.err", "s0.1.out"
  void in_event(std::string_view line);            // a line of events.jsonl
  void in_summary(std::string_view json);
  void in_ledger(const shard_server::Ledger& ledger);
  void at_lineage(Lineage other);
  void at_attempt(WorkerId worker, Attempt attempt);
};

// All numbers that the run's directory shows, except those in the ledgers of checkpoints.
[[nodiscard]] SeenNumbers seen_in(const std::string& run_dir);

// The first incarnation of the new journal.
[[nodiscard]] Incarnation incarnation_above(const SeenNumbers& seen);
// The image of a job daemon of this run whose workers and servers have all ended. The run is
// resumed from a checkpoint, because nobody holds the training state.
[[nodiscard]] ctl::JobImage image_above(const SeenNumbers& seen, std::uint32_t workers,
                                        std::uint32_t servers);

}  // namespace antdt::jobd
