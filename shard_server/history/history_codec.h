// Encodes and decodes the columns of a run's history. Used inside the library only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "shard_server/archive.h"

namespace antdt::shard_server {

// Under this key `meta` has the number of records of a phase that began before the data grew.
inline std::string size_key(Generation generation, std::uint64_t phase) {
  return fmt::format("records.{}.{}", generation.value, phase);
}

inline constexpr std::uint64_t kHistoryFormat = 1;
// "AntH" in the database's header.
inline constexpr std::uint64_t kHistoryApplicationId = 0x416e7448;

[[nodiscard]] constexpr std::uint64_t number_of(WorkerId worker) {
  return std::uint64_t{static_cast<unsigned char>(worker.role)} << 32 | worker.index;
}

[[nodiscard]] inline std::string encode_members(const std::vector<WorkerId>& members) {
  Writer out;
  out(members);
  return out.take();
}

// `first` is left out, because it is a column of its own.
[[nodiscard]] inline std::string encode_run(const wire::StepRun& run) {
  Writer out;
  out(run.steps, run.phase, run.places, run.records);
  return out.take();
}

[[nodiscard]] inline Result<std::vector<WorkerId>> decode_members(std::string_view bytes) {
  Reader in(bytes);
  std::vector<WorkerId> members;
  in(members);
  if (in.ok() && in.at_end()) return members;
  return fail(ErrorKind::kCorrupt, "the members of a generation cannot be read");
}

[[nodiscard]] inline Result<wire::StepRun> decode_run(Step first, std::string_view bytes) {
  Reader in(bytes);
  wire::StepRun run;
  run.first = first;
  in(run.steps, run.phase, run.places, run.records);
  if (in.ok() && in.at_end() && run.places.size() == run.records.size()) return run;
  return fail(ErrorKind::kCorrupt, "the steps from {} on cannot be read", first);
}

}  // namespace antdt::shard_server
