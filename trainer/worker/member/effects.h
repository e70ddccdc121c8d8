// What the machine of a member of a collective wants done (member_machine.h), as data.
//
// A driver does them in order. Those under *Operations* take their time; a step has one of them
// at most, as its last effect, and the driver answers it with the input that is named beside it.
// What computes, sums and reads is the driver's business: a thread that blocks
// (trainer/loop/member_driver.h), a user's own loop, or virtual time (sim/members/worker.h). A
// worker of parameter servers shares some of them (ps_effects.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/client/client_core.h"
#include "trainer/worker/member/heal_plan.h"
#include "trainer/worker/step_slot.h"
#include "trainer/worker/time_use.h"

namespace antdt::worker {

// To the client, which says it to the job.
struct Send {
  std::variant<wire::Join, wire::Address, wire::Ready, client::BeginPhase, client::SetHold,
               client::Commit, client::BatchTimes, client::GiveBack, wire::Progress,
               wire::CheckpointBegun, wire::CheckpointWritten>
      what;
};
// From now on time goes there.
struct SpendTime {
  TimeUse use = TimeUse::kOther;
};
// Lets go of what was built or connected; its threads end.
struct LeaveCollective {
  std::string why;  // empty: for the next one
};
// Records of the training data, or of those to evaluate, are read ahead from now on.
enum class Data : std::uint8_t { kTrain, kEval };
struct StartReading {
  Data data = Data::kTrain;
};
struct StopReading {};
// Of the job's learning rate, from the next Apply on.
struct SetRate {
  double factor = 1;
};
// Gradients are summed from zero, and over the collective in the end.
struct BeginStep {};
// What was computed in this step is forgotten; nothing else changes.
struct DropStep {};
// This member gives up in the middle of a step: the others are not to wait for it.
struct AbandonStep {};
// Writes the state as it is now while everything goes on. Answered by Saved, which may come long
// after. An ordered one is told to the job by the driver as soon as it is written, on whatever
// thread: a step may take longer than anybody wants to wait.
struct Save {
  wire::CheckpointWritten about;  // without directory, files, error
  enum class Kind : std::uint8_t { kOrdered, kFinalModel } kind = Kind::kOrdered;
};
struct GiveUpSaving {
  std::string reason;
};
// The end: this process leaves with that code, or says why it gives up.
struct Exit {
  int code = 0;
};
struct GiveUp {
  Error error;
};

// --------------------------------------------------------------------------- operations

// The generation begins here: what blocks ends with it from now on. -> CollectiveBuilt
struct BuildCollective {
  Generation generation;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};
// -> CollectiveConnected
struct ConnectCollective {
  wire::Form form;
  std::vector<wire::RosterMember> members;  // by rank
};
// In place of the training state. -> StateRead, StateUnreadable
struct ReadState {
  std::string directory;
};
// Tells the others where this member stands, with the sizes of its state. -> StatesCompared
struct CompareStates {
  bool has_state = false;
  Step step;
  std::string meta;
};
// Receives, sends or both: `meta` and the parts of the state (heal_plan.h). -> StatePassed
struct PassState {
  HealPlan plan;
  std::string meta;             // what it sends
  std::uint64_t all_bytes = 0;  // of what passes
  // What this member has stays whole until the other is there: see heal_plan.h.
  bool keeps_own = false;
};
// -> StateHashed
struct HashState {
  Step step;
};
// Takes up to so many records, waiting for `patience` at most, and adds their gradient. With
// `last` nothing more comes in this step. Time goes to kCompute once records are there.
// -> MicroBatchComputed
struct ComputeMicroBatch {
  Step step;
  std::uint32_t records = 0;
  Duration patience{};
  bool last = false;
};
// The gradients of all members are summed. -> Reduced
struct Reduce {};
// -> SlotsGathered
struct GatherSlots {
  StepSlot mine;
};
// One step of the optimizer with the summed gradient divided by `weight`. -> Applied
struct Apply {
  double weight = 0;
};
// That the client holds. -> PlanTaken
struct TakePlan {
  PlanVersion version;
};
// All members do it at the same moment. -> HopMeasured
struct MeasureHop {};
// -> RecordsAwaited
struct AwaitRecords {
  Duration time{};
};
// Takes up to so many records and evaluates them. Time goes to kCompute once they are there.
// -> BatchEvaluated
struct EvaluateBatch {
  std::uint32_t records = 0;
  Duration patience{};
};

using Effect = std::variant<Send, SpendTime, LeaveCollective, StartReading, StopReading, SetRate,
                            BeginStep, DropStep, AbandonStep, Save, GiveUpSaving, Exit, GiveUp,
                            BuildCollective, ConnectCollective, ReadState, CompareStates, PassState,
                            HashState, ComputeMicroBatch, Reduce, GatherSlots, Apply, TakePlan,
                            MeasureHop, AwaitRecords, EvaluateBatch>;
using Effects = std::vector<Effect>;

}  // namespace antdt::worker
