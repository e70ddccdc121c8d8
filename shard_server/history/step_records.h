// Which records made a step: a question to the run's history.
//
// A step belongs to the newest generation that began before it and did not end
// before it: what a generation did past the step after which the next one of its
// lineage settled is in nobody's model. A lineage that began from a checkpoint
// before the step undid it; if none of its own has come as far, the step of the
// older one is the answer, and who undid it is part of the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

// A part of the records that a member trained, of one shard, rising.
struct ShardRecords {
  std::uint64_t shard = 0;
  std::vector<std::uint64_t> records;
};
struct MemberRecords {
  WorkerId worker;
  std::uint64_t records = 0;           // that it trained in the step
  std::vector<ShardRecords> shards{};  // which; fewer where the history has a gap
};
struct StepRecords {
  Step step;
  Lineage lineage;
  Generation generation;
  std::optional<Epoch> epoch;            // none is known of a step without records
  std::optional<Lineage> undone_by{};    // the model forgot it: this lineage began before it
  std::vector<MemberRecords> members{};  // by rank
  [[nodiscard]] std::uint64_t records() const;
  [[nodiscard]] std::uint64_t unknown() const;  // of them, those that the history does not name
};

// Reads the history.db of a run, also while the job runs. kUsage: no such step was
// applied (the message says which were); kCorrupt: the history has lost it, or is
// damaged; kAborted: it knows of no generation at all.
[[nodiscard]] Result<StepRecords> read_step(const std::string& path, Step step);

// Rising numbers as "3 5-9 12".
[[nodiscard]] std::string as_ranges(const std::vector<std::uint64_t>& rising);
[[nodiscard]] std::string step_table(const StepRecords& found);
// {"schema":1,"step","lineage","generation","epoch","undone_by","records_total",
//  "unknown","workers":[{"worker","rank","records":[…],"shards":[{"shard","records":[…]}]}]}
[[nodiscard]] std::string step_json(const StepRecords& found);

}  // namespace antdt::shard_server
