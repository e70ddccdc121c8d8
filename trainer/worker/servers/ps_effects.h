// The effects of the machine of a worker of parameter servers (ps_machine.h).
//
// A driver carries them out in order. Those under *Operations* take time; a step has at most one of
// them, as its last effect, and the driver answers it with the input that is named beside it
// (ps_inputs.h). Effects that it shares with a member of a collective are in effects.h.
//
// The driver holds two batches: the next one, and the one that is trained. Pushes go on by
// themselves, each behind the one before, whenever the driver reads from servers; their results are
// passed as PushDecided. The driver reads while it waits for servers, before and after it computes,
// and while it waits until late records are given back.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/worker/member/effects.h"

namespace antdt::worker::ps_worker {

// Releases the link to the servers.
struct LeaveServers {
  std::string why;  // empty: to be ready for the next one
};
// Requests the rows of the next batch, as they are once all servers have reached `clock`
// (wire::PsPull).
struct SayPull {
  std::uint64_t clock = 0;
};
// The pull of the next batch is not needed; the servers' answers are ignored.
struct ForgetPull {};
// Requests the rows of the centre. When they are here, CentreHere is passed.
struct SayCentrePull {};
// From now on the next batch is the one that is trained, with the rows that were pulled.
struct BeginBatch {};

// --------------------------------------------------------------------------- operations

// Replaces any previous link. Opens the tables of the model and puts their first values. A replica
// of the dense parameters, if the model has one, begins with the centre on the servers. What blocks
// from now on ends with the generation. -> ServersOpened
struct OpenServers {
  Generation generation;
  wire::PsRoster roster;
};
// Takes the next batch, of up to `records` records. Time counts as kCompute once they are there. ->
// BatchTaken
struct TakeBatch {
  enum class Wait : std::uint8_t {
    kNot,         // only records that are there; otherwise kWait
    kForData,     // up to `patience`, which counts as time for reading
    kForRecords,  // up to `patience`, for records to be granted
  };
  std::uint64_t records = 0;
  Wait wait = Wait::kNot;
  Duration patience{};
  std::uint64_t push = 0;  // number of the last push
};
// Waits until the rows of the next batch are there, or a push is decided. A driver may answer
// earlier. -> RowsPulled, ServersAnswered
struct AwaitRows {};
// Computes the gradient of the batch. -> BatchComputed
struct ComputeBatch {
  std::uint64_t push = 0;  // number of the last push
};
// Stages the gradients, and commits them when their turn comes. Without a barrier, the driver sets
// commit.version. -> PushSaid
struct SayPush {
  wire::PsCommit commit;
  // Whether the replica is moved towards the centre that is here, and the push moves the centre by
  // the same towards the replica.
  bool exchange = false;
  bool records = true;  // otherwise the push has no gradients: it is only the exchange
};
// Waits until a push is decided, or the centre is here; one of them must be in progress. A driver
// may answer earlier. -> ServersAnswered
struct AwaitServers {};
// -> GivenBack
struct AwaitGivenBack {
  Duration patience{};
};
// This worker has nothing to push until its next push: nobody waits for it. -> SaidIdle
struct SayIdle {};
// The same, and waits until everything that is decided by now is applied. -> ServersSettled
struct SettleServers {};

using Effect = std::variant<Send, SpendTime, LeaveServers, StartReading, StopReading, SayPull,
                            ForgetPull, SayCentrePull, SetRate, BeginBatch, Exit, GiveUp,
                            OpenServers, TakeBatch, AwaitRows, ComputeBatch, SayPush, AwaitServers,
                            AwaitGivenBack, SayIdle, SettleServers, AwaitRecords, EvaluateBatch>;
using Effects = std::vector<Effect>;

}  // namespace antdt::worker::ps_worker
