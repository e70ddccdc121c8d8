// A worker's calls to a group of parameter servers: tables, pulls and pushes, made of requests
// (requests.h), several under way at once.
//
//   pull:        said ──every server has answered──> here ──take()──> gone
//   push:        push_order.h
//   to all:      opening ──> putting first values ──> done       one at a time
//                settling: saying idle ──> waiting until all that is decided is applied ──> done
//
// Nothing moves on by itself: what has come is taken in, and what follows from it is said, by
// step(). So no thread is needed beside the caller's, and while a call waits for one thing nothing
// else stands still.
//
// One message a server for all tables; keys are split by the server that holds their slice
// (row_shares.h). For one generation of the group. A value without I/O. What is called appends what
// is to be sent to `out`; rows and gradients are passed by reference, since they are large.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/calls/requests.h"
#include "trainer/ps/calls/row_shares.h"
#include "trainer/ps/push_order.h"
#include "trainer/ps/rows/tables.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

class WorkerCalls {
 public:
  WorkerCalls(Member self, Consistency consistency, requests::Start start);

  void begin(requests::Effects& out) { requests_.begin(out); }
  // Takes in what has happened and says what follows from it.
  void step(requests::Input input, MonoTime now, requests::Effects& out);
  // Why no call comes to an end any more: kAborted where a server says that the group is over.
  [[nodiscard]] const std::optional<Error>& failure() const;

  // ---- calls to all servers, one at a time; done when take_answer() has something
  // The tables of the model, and the first values of rows that are not there yet. It comes before
  // the calls below, which split and join rows of these widths. Its answer: the updates that are
  // applied on the server that is furthest.
  void open(const wire::PsOpen& tables, MonoTime now, requests::Effects& out);
  [[nodiscard]] Status put(const std::vector<TableGradient>& values, MonoTime now,
                           requests::Effects& out);
  // There is nothing to push until it pushes again, and nobody waits for it. Its answer: the
  // updates decided so far. No push may be under way.
  void idle(MonoTime now, requests::Effects& out);
  // Likewise, and done when all that is decided by now is applied on every server.
  void settle(MonoTime now, requests::Effects& out);
  [[nodiscard]] std::optional<Result<std::uint64_t>> take_answer();

  // ---- pulls: one that waits at a time, since servers keep one of each worker
  using Ticket = std::uint64_t;
  struct Pulled {
    std::vector<std::vector<float>> values;  // by the tables asked for, rows in the keys' order
    std::vector<std::uint64_t> versions;     // by server: updates applied when it answered
    std::uint64_t clock = 0;                 // newest push of the worker that is furthest behind
  };
  // Answered when every server is at `clock` (wire::PsPull).
  [[nodiscard]] Ticket say_pull(const std::vector<TableKeys>& keys, std::uint64_t clock,
                                MonoTime now, requests::Effects& out);
  [[nodiscard]] bool is_here(Ticket pull) const;
  [[nodiscard]] Result<Pulled> take(Ticket pull);  // that is here
  // It is not taken; the servers may still answer it.
  void forget(Ticket pull);

  // ---- pushes
  // `versions`: those of what it was computed from, by server; with a barrier commit.version says
  // the step, without one it is set here. commit.number is that of no push before.
  [[nodiscard]] Status say_push(const std::vector<TableGradient>& gradients,
                                const std::vector<std::uint64_t>& versions, wire::PsCommit commit,
                                MonoTime now, requests::Effects& out);
  // Of the first push whose decision was not taken; nothing: not decided yet, or there is none.
  [[nodiscard]] std::optional<wire::PsDecided> take_decision() { return order_.take_decision(); }
  [[nodiscard]] bool has_decision() const { return order_.has_decision(); }
  [[nodiscard]] const PushOrder& pushes() const { return order_; }

  [[nodiscard]] const Requests& requests() const { return requests_; }
  [[nodiscard]] std::optional<Duration> take_hop() { return requests_.take_hop(); }

 private:
  struct Pull {
    std::vector<PulledTable> tables;
    std::vector<Requests::Id> asked;  // by server
  };
  // What is under way for a push that is not decided.
  struct Push {
    std::vector<wire::PsPush> parts;    // by server, until they are said
    std::vector<Requests::Id> staging;  // then, until all have answered
    std::optional<Requests::Id> committing;
  };
  // To all servers; what is asked of them.
  struct Opening {};
  struct Putting {};
  struct Idling {};
  struct Counting {};  // to settle: the updates decided so far
  struct Settling {
    std::uint64_t decided = 0;
  };
  using Doing = std::variant<Opening, Putting, Idling, Counting, Settling>;
  struct Call {
    Doing doing;
    std::vector<Requests::Id> asked;  // by server
  };

  template <class Ask>
  [[nodiscard]] std::vector<Requests::Id> say_all(std::vector<Ask> messages, MonoTime now,
                                                  requests::Effects& out);
  [[nodiscard]] bool all_answered(const std::vector<Requests::Id>& asked) const;
  template <class Reply>
  [[nodiscard]] Result<std::vector<Reply>> take_all(const std::vector<Requests::Id>& asked);
  template <class Ask>
  void call(Doing doing, const Ask& ask, MonoTime now, requests::Effects& out);
  [[nodiscard]] Status advance(MonoTime now, requests::Effects& out);
  void advance_call(MonoTime now, requests::Effects& out);
  [[nodiscard]] Result<std::uint64_t> answer_of(const Opening& doing, const Call& call);
  [[nodiscard]] Result<std::uint64_t> answer_of(const Putting& doing, const Call& call);
  [[nodiscard]] Result<std::uint64_t> answer_of(const Settling& doing, const Call& call);
  template <class Idle>
  [[nodiscard]] Result<std::uint64_t> answer_of(const Idle&, const Call& call) {
    return take_decided(call.asked);
  }
  [[nodiscard]] Result<std::uint64_t> take_decided(const std::vector<Requests::Id>& asked);
  void say_next(MonoTime now, requests::Effects& out);
  // What has come goes into the order of the pushes. Whether the push is decided.
  [[nodiscard]] Result<bool> take_in(std::uint64_t number, Push& push);

  Consistency consistency_;
  std::uint32_t home_;
  Requests requests_;
  std::vector<std::uint32_t> widths_;  // by table
  std::optional<Call> call_;
  std::optional<Result<std::uint64_t>> answer_;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Pull> pulls_;
  PushOrder order_;
  std::map<std::uint64_t, Push> pushes_;  // by number
  std::optional<Error> failure_;
};

}  // namespace antdt::ps
