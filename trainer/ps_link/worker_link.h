// A worker's side of a group of parameter servers: pulls and pushes, several under
// way at once (requests.h).
//
//   push:  trainer/ps/push_order.h
//   pull:  said --every server has answered--> here --take()--> gone
//
// Nothing moves on by itself but bytes: what has come is taken in, and what follows
// from it is said, by whatever call waits, and by advance(), which does not. So no
// thread is needed beside the caller's, and while a call waits for one thing nothing
// else stands still.
//
// One message a server for all tables; keys are split by the server that holds their
// slice and keep their order. A link belongs to one generation of the group and to one
// thread: when the group is over, every call that waits fails with kAborted, and a new
// link is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/push_order.h"
#include "trainer/ps/rows/tables.h"
#include "trainer/ps_link/requests.h"

namespace antdt::ps {

class WorkerLink {
 public:
  // Waits for nobody: servers that are not there yet are waited for by the calls.
  [[nodiscard]] static Result<std::unique_ptr<WorkerLink>> connect(transport::Context& context,
                                                                   Peers peers, Member self);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // The tables of the model, at every server; comes before the calls below, which
  // split and join rows of these widths. Answers how many steps (updates) are
  // applied so far: of the server that is furthest.
  [[nodiscard]] Result<std::uint64_t> open(const wire::PsOpen& tables);

  // Sets rows that are not there yet. Tables rise, and keys in each table, here and
  // below.
  [[nodiscard]] Status put(const std::vector<TableGradient>& values);

  struct Pulled {
    std::vector<std::vector<float>> values;  // by the tables asked for, rows in the keys' order
    std::vector<std::uint64_t> versions;     // by server: updates applied when it answered
    std::uint64_t clock = 0;                 // newest push of the worker that is furthest behind
  };
  // Waits until every server is at `clock` (wire::PsPull).
  [[nodiscard]] Result<Pulled> pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  // The same in parts: one pull at a time, since servers keep one that waits of each
  // worker.
  using Ticket = std::uint64_t;
  [[nodiscard]] Result<Ticket> say_pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  [[nodiscard]] bool is_here(Ticket pull) const;
  [[nodiscard]] Result<Pulled> take(Ticket pull);  // waits where it is not here
  // It is not taken; the servers may still answer it.
  void forget(Ticket pull);

  // Stages the gradients, commits them at the home, and waits for its decision:
  // whether they count. `pulled` is what they were computed from; with a barrier
  // commit.version says the step, without one this link sets it. commit.number is that of no push
  // before.
  [[nodiscard]] Result<wire::PsDecided> push(const std::vector<TableGradient>& gradients,
                                             const Pulled& pulled, const wire::PsCommit& commit);
  // The same in parts: decisions come in the order of the pushes.
  [[nodiscard]] Status say_push(const std::vector<TableGradient>& gradients, const Pulled& pulled,
                                wire::PsCommit commit);
  // Of the first push whose decision was not taken; nothing: not decided yet, or there
  // is none.
  [[nodiscard]] std::optional<wire::PsDecided> take_decision() { return order_.take_decision(); }

  [[nodiscard]] bool has_decision() const { return order_.has_decision(); }

  // Takes in what has come and says what follows from it. wait() blocks until something
  // has come, of whatever is under way; something must be.
  [[nodiscard]] Status advance();
  [[nodiscard]] Status wait();

  // Has nothing to push until it pushes again: nobody waits for it. Answers the
  // updates decided so far. No push may be under way.
  [[nodiscard]] Result<std::uint64_t> idle();
  // Likewise, and waits until all that is decided by now is applied on every server.
  [[nodiscard]] Result<std::uint64_t> settle();

  // As of PushOrder.
  [[nodiscard]] const PushOrder::Said& said() const { return order_.said(); }

  // As of Requests.
  [[nodiscard]] std::optional<Duration> take_hop() { return requests_->take_hop(); }

  // From any thread, once and for all: the call that waits and all later ones fail
  // with kAborted at once.
  void abort() { requests_->abort(); }

 private:
  // Which keys a server holds: their positions, rising; by server.
  using Split = std::vector<std::vector<std::size_t>>;
  struct PulledTable {
    std::uint32_t table = 0;
    std::size_t rows = 0;
    Split parts;
  };
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

  WorkerLink(const Peers& peers, Member self, std::unique_ptr<Requests> requests);
  [[nodiscard]] Split split(const std::vector<std::uint64_t>& keys) const;
  [[nodiscard]] Result<std::uint32_t> width_of(std::uint32_t table) const;
  // By server: its share of these rows.
  [[nodiscard]] Result<std::vector<std::vector<wire::PsRows>>> shares_of(
      const std::vector<TableGradient>& tables) const;
  // The rows of the table at `at` of what was asked, from each server's answer.
  [[nodiscard]] Status join(const PulledTable& table, std::size_t at,
                            const std::vector<wire::PsPulled>& replies,
                            std::vector<float>& values) const;
  [[nodiscard]] bool all_answered(const std::vector<Requests::Id>& asked) const;
  template <class Ask>
  [[nodiscard]] std::vector<Requests::Id> say_all(const std::vector<Ask>& messages);
  template <class Reply>
  [[nodiscard]] Result<std::vector<Reply>> take_all(const std::vector<Requests::Id>& asked);
  // Says each server its message first, then waits for all.
  template <class Reply, class Ask>
  [[nodiscard]] Result<std::vector<Reply>> ask_all(const std::vector<Ask>& messages);
  [[nodiscard]] Status advance_pushes();
  // What has come goes into the order of the pushes. Whether the push is decided.
  [[nodiscard]] Result<bool> take_in(std::uint64_t number, Push& push);
  void say(const PushOrder::Stage& stage);
  void say(const wire::PsCommit& commit);

  const Consistency consistency_;
  const std::uint32_t home_;
  std::unique_ptr<Requests> requests_;
  std::vector<std::uint32_t> widths_;  // by table
  Ticket last_ticket_ = 0;
  std::map<Ticket, Pull> pulls_;
  PushOrder order_;
  std::map<std::uint64_t, Push> pushes_;  // by number
};

}  // namespace antdt::ps
