// What the machine of a worker of parameter servers wants done (ps_machine.h), as data.
//
// A driver does them in order. Those under *Operations* take their time; a step has one of them
// at most, as its last effect, and the driver answers it with the input that is named beside it
// (ps_inputs.h). What it shares with a member of a collective is in effects.h.
//
// The driver holds two batches: the next one, and the one that is trained. Pushes that were said
// go on by themselves, each behind the one before, whenever the driver hears servers; what came of
// them is told as PushDecided. It hears them while it waits for them, before and after it
// computes, and while it awaits what is given back.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/ps_messages.h"
#include "trainer/worker/member/effects.h"

namespace antdt::worker::ps_worker {

// Lets go of the link to them.
struct LeaveServers {
  std::string why;  // empty: for the next one
};
// The rows of the next batch, as they are once all servers are at `clock` (wire::PsPull).
struct SayPull {
  std::uint64_t clock = 0;
};
// Of the next batch; what the servers answer is of no interest any more.
struct ForgetPull {};
// The next batch is the one that is trained from now on, with the rows that were pulled.
struct BeginBatch {};

// --------------------------------------------------------------------------- operations

// In place of any link before. Opens the tables of the model and puts their first values. What
// blocks ends with the generation from now on. -> ServersOpened
struct OpenServers {
  Generation generation;
  wire::PsRoster roster;
};
// The next batch, of up to so many records. Time goes to kCompute once they are there.
// -> BatchTaken
struct TakeBatch {
  enum class Wait : std::uint8_t {
    kNot,         // only what is at hand; otherwise kWait
    kForData,     // up to `patience`, which is time to read
    kForRecords,  // up to `patience`, for records to be handed out
  };
  std::uint64_t records = 0;
  Wait wait = Wait::kNot;
  Duration patience{};
  std::uint64_t push = 0;  // number of the last one
};
// Waits until the rows of the next batch are there, or a push is decided. A driver may answer
// before that. -> RowsPulled, ServersAnswered
struct AwaitRows {};
// The gradient of the batch. -> BatchComputed
struct ComputeBatch {
  std::uint64_t push = 0;  // number of the last one
};
// Stages the gradients and commits them, in time. Without a barrier the driver sets
// commit.version. -> PushSaid
struct SayPush {
  wire::PsCommit commit;
};
// Waits until a push is decided; one is under way. A driver may answer before that.
// -> ServersAnswered
struct AwaitServers {};
// -> GivenBack
struct AwaitGivenBack {
  Duration patience{};
};
// This worker has nothing to push until it pushes again: nobody waits for it. -> SaidIdle
struct SayIdle {};
// Likewise, and waits until all that is decided by now is applied. -> ServersSettled
struct SettleServers {};

using Effect =
    std::variant<Send, SpendTime, LeaveServers, StartReading, StopReading, SayPull, ForgetPull,
                 BeginBatch, Exit, GiveUp, OpenServers, TakeBatch, AwaitRows, ComputeBatch, SayPush,
                 AwaitServers, AwaitGivenBack, SayIdle, SettleServers, AwaitRecords, EvaluateBatch>;
using Effects = std::vector<Effect>;

}  // namespace antdt::worker::ps_worker
