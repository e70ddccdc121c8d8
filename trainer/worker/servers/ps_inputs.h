// What happens to a worker of parameter servers, as its machine hears of it (ps_machine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/ps_messages.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::worker::ps_worker {

// An order: a group of servers, and how its workers wait for one another.
struct ServersNamed {
  Generation generation;
  wire::PsRoster roster;
};

// ------------------------------------------------------------- what the driver knows by now
// Said before each input that follows, if it is new; Heard comes behind these, every time.

// The newest plan that the client holds.
struct PlanHeld {
  wire::Plan plan;
};
// A home was asked to apply a push: nothing behind this place is applied.
struct CommitSaid {
  std::uint64_t phase = 0;
  std::uint64_t place = 0;
};
// Of the first push that is not decided. `hop`: the least that a request and its answer took since
// the decision before.
struct PushDecided {
  wire::PsDecided decided;
  std::optional<Duration> hop;
};

// ------------------------------------------------------------- what effects came to
// An operation (ps_effects.h) is answered once: by what is named beside it there, by ServersLost
// where it needs the servers, or by WorkFailed. A SayPull that fails is answered so in place of
// the operation behind it.

struct ServersOpened {
  std::uint64_t version = 0;  // updates applied on the server that is furthest
};
// kData: so many records are the next batch.
struct BatchTaken {
  client::TakeStatus status = client::TakeStatus::kWait;
  std::uint64_t records = 0;
  Duration data{};  // that it took to read them
};
// The rows of the next batch. By their servers: the fewest and the most updates applied to them.
struct RowsPulled {
  std::uint64_t oldest = 0;
  std::uint64_t newest = 0;
  std::uint64_t clock = 0;  // newest push of the worker that is furthest behind
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
  bool all = false;  // the ledger has said so; otherwise it has not, for so long
};
struct SaidIdle {
  std::uint64_t decided = 0;  // updates, by all servers
};
struct ServersSettled {
  std::uint64_t decided = 0;
};
// The group is over, as far as this worker can reach it.
struct ServersLost {
  std::string why;
};

using Input =
    std::variant<Started, ServersNamed, PhaseStarted, GenerationAborted, RegroupOrdered,
                 LeaveOrdered, Heard, TimePassed, PlanHeld, CommitSaid, PushDecided, ServersOpened,
                 BatchTaken, RowsPulled, ServersAnswered, BatchComputed, PushSaid, GivenBack,
                 SaidIdle, ServersSettled, RecordsAwaited, BatchEvaluated, ServersLost, WorkFailed>;

// An order of the client's as an input; nothing for one that is said to members of a collective
// alone.
[[nodiscard]] std::optional<Input> input_of(client::Directive directive);

}  // namespace antdt::worker::ps_worker
