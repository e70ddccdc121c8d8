// Which records made a step, read from the run's history.
//
// A step belongs to the newest generation that began before it and did not end before it. What a
// generation did after the step at which the next generation of its lineage settled is in nobody's
// model. If training went back to a checkpoint before the step, a new lineage undid the step. If
// the new lineage has not reached that step itself, the answer is the step of the older lineage,
// together with the lineage that undid it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::shard_server {

// Records of one shard that a member trained, in rising order.
struct ShardRecords {
  std::uint64_t shard = 0;
  std::vector<std::uint64_t> records;
};
struct MemberRecords {
  WorkerId worker;
  std::uint64_t records = 0;  // how many it trained in the step
  // which records; fewer than `records` if the history has a gap
  std::vector<ShardRecords> shards{};
};
struct StepRecords {
  Step step;
  Lineage lineage;
  Generation generation;
  std::optional<Epoch> epoch;  // empty for a step without records
  // the lineage that went back to before this step, so that the model forgot it
  std::optional<Lineage> undone_by{};
  std::vector<MemberRecords> members{};  // by rank
  [[nodiscard]] std::uint64_t records() const;
  // how many records of the step the history does not name
  [[nodiscard]] std::uint64_t unknown() const;
};

// Reads the history.db of a run. The job may be running. Errors: kUsage if no such step was applied
// (the message says which were); kCorrupt if the history has lost it or is damaged; kAborted if the
// history has no generation at all.
[[nodiscard]] Result<StepRecords> read_step(const std::string& path, Step step);

// Formats rising numbers as ranges: "3 5-9 12".
[[nodiscard]] std::string as_ranges(const std::vector<std::uint64_t>& rising);
[[nodiscard]] std::string step_table(const StepRecords& found);
// {"schema":1,"step","lineage","generation","epoch","undone_by","records_total",
//  "unknown","workers":[{"worker","rank","records":[…],"shards":[{"shard","records":[…]}]}]}
[[nodiscard]] std::string step_json(const StepRecords& found);

}  // namespace antdt::shard_server
