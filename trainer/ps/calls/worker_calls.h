// A worker's calls to a group of parameter servers (tables, pulls and pushes), which consist of
// requests (requests.h); several may be in progress.
//
//   pull:        said ──every server has answered──> here ──take()──> gone
//   push:        push_order.h
//   to all:      opening ──> putting first values ──> done       one at a time
//                settling: saying idle ──> waiting until all that is decided is applied ──> done
//
// Nothing happens by itself: step() takes in what has arrived and sends what follows from it. So no
// thread is needed besides the caller's, and while a call waits for one thing, everything else goes
// on.
//
// There is one message for each server, with all tables; keys are split by the server that holds
// their slice (row_shares.h). What does not fit one message is refused (kTooLarge): sent, it would
// end the link, and be sent again over the next one. For one generation of the group. A value
// without I/O. Each call appends what is to be sent to `out`. Rows and gradients are passed by
// reference, because they are large.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
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
  // Takes in what has happened, and sends what follows from it.
  void step(requests::Input input, MonoTime now, requests::Effects& out);
  // Why no call can complete any more: kAborted if a server says that the group is over.
  [[nodiscard]] const std::optional<Error>& failure() const;

  // ---- calls to all servers, one at a time; done when take_answer() has a result. open: the
  // tables of the model, and the first values of rows that do not exist yet. It must come before
  // the calls below, which split and join rows of these widths. Its result is the number of updates
  // applied on the server that is furthest. put: before any update, values that do not fit a
  // message are a wrong configuration (kUsage).
  void open(const wire::PsOpen& tables, MonoTime now, requests::Effects& out);
  [[nodiscard]] Status put(const std::vector<TableGradient>& values, MonoTime now,
                           requests::Effects& out);
  // This member's part of the step after the one that is concluded; done when every server has it.
  [[nodiscard]] Status stage(const std::vector<TableGradient>& gradients,
                             const wire::PsConcluded& concluded, std::uint32_t rank, MonoTime now,
                             requests::Effects& out);
  // This worker has nothing to push until its next push, and nobody waits for it. The result is the
  // number of updates decided so far. No push may be in progress.
  void idle(MonoTime now, requests::Effects& out);
  // The same, and done when everything that is decided by now is applied on every server.
  void settle(MonoTime now, requests::Effects& out);
  [[nodiscard]] std::optional<Result<std::uint64_t>> take_answer();

  // ---- pulls: only one that waits at a time, because servers keep one for each worker
  using Ticket = std::uint64_t;
  struct Pulled {
    std::vector<std::vector<float>> values;  // by requested table, rows in the keys' order
    // for each server: how many updates were applied when it answered
    std::vector<std::uint64_t> versions;
    std::uint64_t clock = 0;  // the newest push of the worker that is furthest behind
  };
  // Answered when every server has reached `clock` (wire::PsPull).
  [[nodiscard]] Result<Ticket> say_pull(const std::vector<TableKeys>& keys, std::uint64_t clock,
                                        MonoTime now, requests::Effects& out);
  // The rows as they are after the step that is concluded (wire::PsStepPull).
  [[nodiscard]] Result<Ticket> say_step_pull(const std::vector<TableKeys>& keys,
                                             const wire::PsConcluded& concluded, MonoTime now,
                                             requests::Effects& out);
  [[nodiscard]] bool is_here(Ticket pull) const;
  [[nodiscard]] Result<Pulled> take(Ticket pull);  // needs a pull that is here
  // The result is not needed; the servers may still answer.
  void forget(Ticket pull);

  // ---- pushes `versions`: the versions, by server, of the rows from which the push was computed.
  // With a barrier, commit.version names the step; without one it is set here. commit.number must
  // be new.
  [[nodiscard]] Status say_push(const std::vector<TableGradient>& gradients,
                                const std::vector<std::uint64_t>& versions, wire::PsCommit commit,
                                MonoTime now, requests::Effects& out);
  // The decision about the first push whose decision was not taken; empty: it is not decided yet,
  // or there is no such push.
  [[nodiscard]] std::optional<wire::PsDecided> take_decision() { return order_.take_decision(); }
  [[nodiscard]] bool has_decision() const { return order_.has_decision(); }
  [[nodiscard]] const PushOrder& pushes() const { return order_; }

  [[nodiscard]] const Requests& requests() const { return requests_; }
  [[nodiscard]] std::optional<Duration> take_hop() { return requests_.take_hop(); }

 private:
  // Each server's keys of a pull.
  struct Asked {
    std::vector<PulledTable> tables;
    std::vector<std::vector<wire::PsRows>> rows;  // by server
  };
  [[nodiscard]] Asked split(const std::vector<TableKeys>& keys) const;
  struct Pull {
    std::vector<PulledTable> tables;
    std::vector<Requests::Id> asked;  // by server
  };
  // What is in progress for a push that is not decided.
  struct Push {
    std::vector<wire::PsPush> parts;    // for each server, until they are sent
    std::vector<Requests::Id> staging;  // afterwards, until all have answered
    std::optional<Requests::Id> committing;
  };
  // Calls to all servers, and their requests.
  struct Opening {};
  struct Putting {};
  struct Staging {};
  struct Idling {};
  struct Counting {};  // for settle: the number of updates decided so far
  struct Settling {
    std::uint64_t decided = 0;
  };
  using Doing = std::variant<Opening, Putting, Staging, Idling, Counting, Settling>;
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
  [[nodiscard]] Result<std::uint64_t> answer_of(const Staging& doing, const Call& call);
  [[nodiscard]] Result<std::uint64_t> answer_of(const Settling& doing, const Call& call);
  template <class Idle>
  [[nodiscard]] Result<std::uint64_t> answer_of(const Idle&, const Call& call) {
    return take_decided(call.asked);
  }
  [[nodiscard]] Result<std::uint64_t> take_decided(const std::vector<Requests::Id>& asked);
  void say_next(MonoTime now, requests::Effects& out);
  // Reports progress to the order of the pushes. Returns whether the push is decided.
  [[nodiscard]] Result<bool> take_in(std::uint64_t number, Push& push);

  Consistency consistency_;
  std::uint32_t home_;
  Requests requests_;
  std::vector<std::uint32_t> widths_;  // by table
  std::uint64_t version_ = 0;          // when the tables were opened
  std::optional<Call> call_;
  std::optional<Result<std::uint64_t>> answer_;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Pull> pulls_;
  PushOrder order_;
  std::map<std::uint64_t, Push> pushes_;  // by number
  std::optional<Error> failure_;
};

}  // namespace antdt::ps
