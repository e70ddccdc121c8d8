// What a job of steps_job.h consists of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trainer/ps/steps/step_server.h"

namespace antdt::ps::steps_job {

// Breaks a rule, to show that the comparison finds it.
enum class Sabotage {
  kNone,
  kNoTakeBack,      // a server keeps a step that no survivor has
  kNoFence,         // a server takes messages of an earlier generation
  kGatherEarly,     // a member sends its slot before all servers have its part
  kSpeakUnsettled,  // members speak to servers before their generation has settled
  kSkipEmpty,       // members stage nothing in a step without records
  kCutLate,         // a server writes its part of a checkpoint one step too late
  kForgetWeight,    // a member that was healed does not know what the last step applied
};

constexpr std::uint64_t kKeys = 12;
constexpr std::uint64_t kFaultyTurns = 600;
constexpr std::uint64_t kMostTurns = 20000;
constexpr std::uint64_t kQuietSteps = 4;  // after the last fault

using Row = std::map<std::uint64_t, float>;
// What a step adds to the rows, if it is applied.
struct Update {
  double weight = 0;
  bool empty = false;  // no member has records
  std::uint64_t cut = 0;
  std::map<std::uint32_t, Row> parts;  // by rank
};
using UpdateId = std::uint64_t;
// A dense replica: the updates that it contains.
struct Replica {
  Step step;
  double weight = 0;  // of the last step
  std::vector<UpdateId> updates;
};

struct Worker {
  enum class At { kResting, kPulling, kStaging, kGathering };
  bool lives = true;
  bool away = false;   // cut off from the others, not from servers
  Generation settled;  // whose replica it has; 0: none
  Replica replica;
  // In its generation:
  std::uint32_t rank = 0;
  std::uint64_t group = 0;  // of servers
  std::uint64_t cut = 0;    // agreed on in the last step
  At at = At::kResting;
  std::set<std::uint32_t> waits_for;  // servers
  Row pulled;
};
struct Ring {
  Generation generation;
  std::vector<std::size_t> members;  // by rank
  bool whole = false;
  std::map<Step, UpdateId> updates;
  std::map<Step, std::set<std::uint32_t>> slots;
};
struct Message {
  std::size_t sender = 0;
  std::uint32_t server = 0;
  std::uint64_t group = 0;
  Worker::At at = Worker::At::kPulling;
  steps::Input input;
};
struct RowServer {
  Store store;
  StepServer steps;
};
struct Checkpoint {
  std::optional<Replica> dense;
  std::map<std::uint32_t, std::pair<Step, Row>> rows;  // by server
};

}  // namespace antdt::ps::steps_job
