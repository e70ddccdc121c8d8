// The effects of the machine of a member of a collective (member_machine.h).
//
// A driver carries them out in order. Those under *Operations* take time; a step has at most one of
// them, as its last effect, and the driver answers it with the input that is named beside it. How
// computing, summing and reading are done is up to the driver: with a thread that blocks
// (trainer/loop/member_driver.h), in a user's own loop, or in virtual time (sim/members/worker.h).
// A worker of parameter servers shares some of these effects (ps_effects.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "core/wire/servers/ps_messages.h"
#include "core/wire/training_messages.h"
#include "trainer/client/client_core.h"
#include "trainer/worker/member/heal_plan.h"
#include "trainer/worker/sharing/share_desk.h"
#include "trainer/worker/step_slot.h"
#include "trainer/worker/time_use.h"

namespace antdt::worker {

// The generation has settled, and these servers, of that generation of their group, hold the rows.
struct UseServers {
  Generation group;
  wire::PsRoster servers;
};
// To the client, which sends it to the job.
struct Send {
  std::variant<wire::Join, wire::Address, wire::Ready, client::BeginPhase, client::SetHold,
               client::Commit, client::BatchTimes, client::GiveBack, client::Skip, wire::Progress,
               wire::CheckpointBegun, wire::CheckpointWritten>
      what;
};
// From now on time counts as this.
struct SpendTime {
  TimeUse use = TimeUse::kOther;
};
// Release what was built or connected; its threads end.
struct LeaveCollective {
  std::string why;  // empty: to be ready for the next one
};
// From now on, records of the training data, or of the evaluation data, are read in advance.
enum class Data : std::uint8_t { kTrain, kEval };
struct StartReading {
  Data data = Data::kTrain;
};
struct StopReading {};
// Factor of the job's learning rate, from the next Apply on.
struct SetRate {
  double factor = 1;
};
// Gradients are summed from zero, and in the end over the collective. `local`: they stay with this
// member, and no Reduce follows.
struct BeginStep {
  bool local = false;
  // Ranks, ascending, this one among them and perhaps alone: gradients are summed over these
  // members only. Empty: over all.
  std::vector<std::uint32_t> sums_with = {};
};
// To the desk of the group: which part of the step this member took (TakePart).
struct OfferPart {
  sharing::Offered offer;
};
// Forget what was computed in this step, and take back what its Mix or its ExchangeUpdates changed,
// if there was one; nothing else changes.
struct DropStep {};
// This member gives up in the middle of a step: the others must not wait for it.
struct AbandonStep {};
// Write the present state while everything goes on. Answered by Saved, perhaps much later. The
// driver itself reports an ordered checkpoint to the job as soon as it is written, on whatever
// thread, because a step may take longer than the others should wait for it.
struct Save {
  wire::CheckpointWritten about;  // without directory, files, error
  enum class Kind : std::uint8_t { kOrdered, kFinalModel } kind = Kind::kOrdered;
  // In a directory of its own: another checkpoint of this step may still be being stored.
  bool apart = false;
};
struct GiveUpSaving {
  std::string reason;
};
// The end: the process exits with that code, or reports why it gives up.
struct Exit {
  int code = 0;
};
struct GiveUp {
  Error error;
};

// --------------------------------------------------------------------------- operations

// The generation begins: what blocks from now on ends with it. -> CollectiveBuilt
struct BuildCollective {
  Generation generation;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  bool holds_base = false;  // this member holds the state of the settled generation that goes on
};
// -> CollectiveConnected
struct ConnectCollective {
  wire::Form form;
  std::vector<wire::RosterMember> members;  // by rank
};
// Replaces the training state. -> StateRead, StateUnreadable
struct ReadState {
  std::string directory;
};
// Tells the others which state this member has, and its sizes. -> StatesCompared
struct CompareStates {
  bool has_state = false;
  Step step;
  std::string meta;
  Generation consolidated = {};  // HealSlot::consolidated
};
// The members of a domain, whose replicas have the same bits. The ranks ascend; the first one is
// the domain's leader, which sends and receives for all of it.
struct DomainRanks {
  std::string domain;
  std::vector<std::uint32_t> ranks;
};
// The whole state (parameters, and what the optimizer keeps) of the members with these ranks, which
// ascend, becomes their mean, with the same bits on each. This member is one of them, in a new
// generation perhaps the only one; the others do nothing meanwhile. A member that cannot complete
// it has its state from before. -> Consolidated
//
// With `domains`, to which the holders belong, in the order of their leaders (Gaia): first what
// came in part from any other domain is withdrawn, then these domains send one another all that is
// pending. The mean is then one of domains, not of members. Afterwards nothing is pending, and
// nothing that came in part is kept.
struct Consolidate {
  std::vector<std::uint32_t> holders;
  std::vector<DomainRanks> domains = {};
};
// Receives, sends, or both: `meta` and the parts of the state (heal_plan.h). -> StatePassed
struct PassState {
  HealPlan plan;
  std::string meta;             // what it sends first
  std::uint64_t all_bytes = 0;  // size of what passes
  // The state that this member has must stay complete until the other has arrived: see heal_plan.h.
  bool keeps_own = false;
};
// `settles`: the members compare their hashes, and those whose state differs from that of rank 0
// receive that one (settle_plan). `on_device`: HealPlan::on_device. -> StateHashed
struct HashState {
  Step step;
  bool settles = false;
  bool on_device = false;
};
// Before anything is computed in the step after `step`: the parameters, and not what the optimizer
// keeps, become their mean over the members with these ranks, which ascend. This member is one of
// two or more of them; other members mix in other groups, or not at all. The parameters from before
// are kept until Apply, which drops them, or DropStep, which takes them back. -> Mixed
struct Mix {
  std::vector<std::uint32_t> group;
  Step step;
};
// Before anything is computed in the step after `step`: each of these domains, two or more in the
// order of their leaders, sends the others what it has changed since it sent it: what is
// significant, or, with `whole`, everything. This member belongs to the domain `own`. What was
// before is kept until Apply, which drops it, or DropStep, which takes it back. With `visits`, a
// copy of each domain's replica, from before the exchange, first goes to the next domain, and what
// is computed in the step is also evaluated with both (MicroBatchComputed). -> UpdatesExchanged
struct ExchangeUpdates {
  std::vector<DomainRanks> domains;
  std::string own;
  bool whole = false;
  Step step;
  double threshold = 0;  // of significance, at the job's full learning rate
  bool visits = false;
};
// Takes up to `records` records, waiting at most for `patience`, and adds their gradient. With
// `last`, nothing more comes in this step. Time counts as kCompute once records are there. ->
// MicroBatchComputed
struct ComputeMicroBatch {
  Step step;
  std::uint32_t records = 0;
  Duration patience{};
  bool last = false;
};
// In a shared step (trainer/worker/sharing): takes up to `records` records, waiting at most for
// `patience`, and keeps them as this member's part of the step. -> PartTaken
struct TakePart {
  std::uint32_t records = 0;
  Duration patience{};
};
// Adds the gradient of a run of this member's part, or of the part of the member that the answer to
// the last AskForRun named. Time counts as kCompute once the records are there. ->
// MicroBatchComputed
struct ComputeRun {
  Step step;
  sharing::Run run;
};
// Asks the desk of the group. -> RunAnswered
struct AskForRun {
  sharing::Asked ask;
};
// The gradients are summed over the members that BeginStep names. -> Reduced
struct Reduce {};
// The job daemon stores which records this member skipped in the step. Unless the generation ends,
// it does not end before that. -> SkipsTold
struct AwaitSkipsTold {};
// Every parameter server is sent this member's part of the step: its gradients of rows, or none.
// -> PartSent, without waiting for their answers
struct SendPart {};
// -> PartStaged, when all of them have it
struct AwaitPartStaged {};
// -> SlotsGathered
struct GatherSlots {
  StepSlot mine;
};
// One step of the optimizer with the gradient, the summed one or this member's own (BeginStep),
// divided by `weight`. -> Applied
struct Apply {
  double weight = 0;
};
// The plan that the client holds. -> PlanTaken
struct TakePlan {
  PlanVersion version;
};
// All members do it at the same moment. -> HopMeasured
struct MeasureHop {};
// -> RecordsAwaited
struct AwaitRecords {
  Duration time{};
};
// Takes up to `records` records and evaluates them. Time counts as kCompute once they are there. ->
// BatchEvaluated
struct EvaluateBatch {
  std::uint32_t records = 0;
  Duration patience{};
};

using Effect =
    std::variant<UseServers, Send, SpendTime, LeaveCollective, StartReading, StopReading, SetRate,
                 BeginStep, OfferPart, DropStep, AbandonStep, Save, GiveUpSaving, Exit, GiveUp,
                 BuildCollective, ConnectCollective, ReadState, CompareStates, Consolidate,
                 PassState, HashState, Mix, ExchangeUpdates, ComputeMicroBatch, TakePart,
                 ComputeRun, AskForRun, SendPart, Reduce, AwaitSkipsTold, AwaitPartStaged,
                 GatherSlots, Apply, TakePlan, MeasureHop, AwaitRecords, EvaluateBatch>;
using Effects = std::vector<Effect>;

}  // namespace antdt::worker
