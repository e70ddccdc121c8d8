// The inputs of the machine of a member of a collective (member_machine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/client/client.h"
#include "trainer/worker/habits.h"
#include "trainer/worker/member/heal_plan.h"
#include "trainer/worker/sharing/share_desk.h"
#include "trainer/worker/step_slot.h"

namespace antdt::worker {

struct Started {};

// ------------------------------------------------------------- orders of the job daemon
// The client returns them (client::Directive); the driver passes one on whenever awaits_order() is
// true.

struct FormOrdered {
  Generation generation;
  wire::Form form;
};
struct RosterArrived {
  Generation generation;
  wire::Roster roster;
};
struct GenerationSettled {
  Generation generation;
  wire::Settle settle;
};
struct PhaseStarted {
  Generation generation;
  wire::PhaseStart start;
};
struct GenerationAborted {
  Generation generation;
  std::string reason;
};
struct RegroupOrdered {
  Generation generation;
  std::string reason;
};
struct LeaveOrdered {
  std::uint32_t code = 0;
};

// ------------------------------------------------------------- what the driver knows now
// Besides the orders. It is read like a clock: the driver passes it before each input that follows.
struct Heard {
  client::Known job;
  bool stop = false;  // SIGTERM arrived
  bool over = false;  // whether the generation that was begun last is over
  // Not empty: the program wants the training to end before its next step, and why.
  std::string ends = {};

  [[nodiscard]] bool wants_to_leave() const { return stop || job.leave.has_value(); }
  [[nodiscard]] int leave_code() const {
    return job.leave ? static_cast<int>(*job.leave) : kResumable;
  }
};
// Nothing happened for a while; passed now and then while awaits_order() is true.
struct TimePassed {};

// ------------------------------------------------------------- results of effects
// An operation (effects.h) is answered once: by the input that is named beside it there, by
// CollectiveBroke if it needs the others, or by WorkFailed.

struct CollectiveBuilt {
  wire::Address address;
};
struct CollectiveConnected {
  std::string what = {};  // Collective::description()
};
struct StateRead {
  Step step;
};
struct StateUnreadable {
  enum class Cause : std::uint8_t {
    kInterrupted,  // nobody waits for the state any more
    kContent,      // it is damaged, or not what this member can load
    kDisk,         // an error of the disk or the file server, which may pass
  };
  std::string why;
  Cause cause = Cause::kContent;
};
struct StatesCompared {
  std::vector<HealSlot> slots;  // by rank
};
struct Consolidated {};
struct StatePassed {
  std::string meta;  // what came before the parts, if this member received
};
struct StateHashed {
  std::uint64_t hash = 0;
  bool replaced = false;  // it is that of rank 0, in place of this member's own
};
struct Mixed {};
// Bytes that this domain sent, by the number of others: of its messages, and of a copy that visits
// one of them; and of the messages, if every element were in them.
struct UpdatesExchanged {
  std::uint64_t sent_bytes = 0;
  std::uint64_t dense_bytes = 0;
};
// A record of a micro-batch that the program could not use: its index in the micro-batch.
struct SkippedRecord {
  std::uint32_t index = 0;
  std::string reason;
};
// With kData: the sums of `records` records, whose gradient has been added in this step.
struct MicroBatchComputed {
  client::TakeStatus status = client::TakeStatus::kWait;
  std::uint32_t records = 0;
  double weight = 0;
  double loss = 0;
  Duration data{};
  Duration rows{};  // waiting for rows that servers hold
  Duration compute{};
  std::vector<SkippedRecord> skipped = {};
  VisitSums visit = {};  // if the exchange of updates before it had a visit
};
struct PartTaken {
  client::TakeStatus status = client::TakeStatus::kWait;
  std::uint32_t records = 0;
  Duration data{};
};
struct RunAnswered {
  sharing::Answer answer;
};
struct Reduced {};
// In place of MicroBatchComputed or Reduced, where MemberMachine::may_end(): the program has ended
// the training since the step began.
struct TrainingEnded {};
struct SkipsTold {};
struct PartSent {};
struct PartStaged {};
struct SlotsGathered {
  std::vector<StepSlot> slots;  // by rank
};
struct Applied {};
struct PlanTaken {
  wire::Plan plan;
};
struct HopMeasured {
  std::optional<Duration> time;  // round-trip time; empty: there is nothing to compare it with
};
struct RecordsAwaited {};
struct BatchEvaluated {
  client::TakeStatus status = client::TakeStatus::kWait;
  std::uint64_t records = 0;
  wire::EvalPartial partial;
};
struct CollectiveBroke {
  std::string why;
};
// The servers did not give or take rows, though the generation goes on. `cause`, if it is their
// part of the checkpoint: they cannot read it just now (kDisk), or never will (kContent).
struct RowsUnread {
  std::string why;
  std::optional<StateUnreadable::Cause> cause = {};
};
// An error of this member itself (its data, its model, a refusal). kAborted during an evaluation
// means that the generation is over.
struct WorkFailed {
  Error error;
};
// The result of the last Save, at any time after it.
struct Saved {
  wire::CheckpointWritten written;
};

using Input =
    std::variant<Started, FormOrdered, RosterArrived, GenerationSettled, PhaseStarted,
                 GenerationAborted, RegroupOrdered, LeaveOrdered, Heard, TimePassed,
                 CollectiveBuilt, CollectiveConnected, StateRead, StateUnreadable, StatesCompared,
                 Consolidated, StatePassed, StateHashed, Mixed, UpdatesExchanged,
                 MicroBatchComputed, TrainingEnded, PartTaken, RunAnswered, PartSent, Reduced,
                 SkipsTold, PartStaged, SlotsGathered, Applied, PlanTaken, HopMeasured,
                 RecordsAwaited, BatchEvaluated, CollectiveBroke, RowsUnread, WorkFailed, Saved>;

// An order of the client's as an input; empty for an order that is not for members of a collective.
[[nodiscard]] std::optional<Input> input_of(client::Directive directive);
// The answer of an operation with the others that failed: CollectiveBroke, as a new group may mend
// most errors. It mends neither what the user has to (kUsage) nor what is wrong with this process
// (kInternal): those are WorkFailed.
[[nodiscard]] Input group_failed(const Error& error);
// The same, of an operation with servers: CollectiveBroke only where their group is over
// (kAborted), else RowsUnread. They answer kPeerIo while they cannot read the checkpoint, kCorrupt
// if it is damaged.
[[nodiscard]] Input rows_failed(const Error& error);

}  // namespace antdt::worker
