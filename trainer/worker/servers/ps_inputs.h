// The inputs of the machine of a worker of parameter servers (ps_machine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::worker::ps_worker {

// An order: a group of servers, and how its workers wait for one another.
struct ServersNamed {
  Generation generation;
  wire::PsRoster roster;
};

// ------------------------------------------------------------- what the driver knows now
// Passed before each input that follows, if it is new; Heard comes after these, every time.

// The newest plan that the client holds.
struct PlanHeld {
  wire::Plan plan;
};
// A home was asked to apply a push: nothing beyond this place is applied.
struct CommitSaid {
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
};
// Concerns the first push that is not decided. `hop`: the least round-trip time since the previous
// decision.
struct PushDecided {
  wire::PsDecided decided;
  std::optional<Duration> hop;
};

// The rows of the centre that were requested are here.
struct CentreHere {};

// ------------------------------------------------------------- results of effects
// An operation (ps_effects.h) is answered once: by the input that is named beside it there, by
// ServersLost if it needs the servers, or by WorkFailed. If a SayPull fails, that is the answer to
// the operation behind it.

struct ServersOpened {
  std::uint64_t version = 0;  // number of updates applied on the server that is furthest
};
// With kData: the next batch has `records` records.
struct BatchTaken {
  client::TakeStatus status = client::TakeStatus::kWait;
  std::uint64_t records = 0;
  Duration data{};  // how long it took to read them
};
// The rows of the next batch, with the fewest and the most updates that any of their servers had
// applied.
struct RowsPulled {
  std::uint64_t oldest = 0;
  std::uint64_t newest = 0;
  std::uint64_t clock = 0;  // the newest push of the worker that is furthest behind
};
struct ServersAnswered {};
// Sums over the batch.
struct BatchComputed {
  double weight = 0;
  double loss = 0;
  Duration compute{};
};
struct PushSaid {};
struct GivenBack {
  bool all =
      false;  // whether the ledger has confirmed it; otherwise it has not within the patience
};
struct SaidIdle {
  std::uint64_t decided = 0;  // number of updates, by all servers
};
struct ServersSettled {
  std::uint64_t decided = 0;
};
// The group is over, as far as this worker can reach it.
struct ServersLost {
  std::string why;
};

using Input = std::variant<Started, ServersNamed, PhaseStarted, GenerationAborted, RegroupOrdered,
                           LeaveOrdered, Heard, TimePassed, PlanHeld, CommitSaid, PushDecided,
                           CentreHere, ServersOpened, BatchTaken, RowsPulled, ServersAnswered,
                           BatchComputed, PushSaid, GivenBack, SaidIdle, ServersSettled,
                           RecordsAwaited, BatchEvaluated, ServersLost, WorkFailed>;

// An order of the client's as an input; empty for an order that is only for members of a
// collective.
[[nodiscard]] std::optional<Input> input_of(client::Directive directive);

}  // namespace antdt::worker::ps_worker
