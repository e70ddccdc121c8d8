// A worker's side of a group of parameter servers: one link to each.
//
// Calls block until every server has answered; a request that is not answered in
// time is said again, which changes nothing (server.h). One message a server for
// all tables; keys are split by the server that holds their slice and keep their
// order. A link belongs to one generation of the group and to one thread: when the
// group is over, every call fails with kAborted, and a new link is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/server.h"
#include "trainer/ps/tables.h"

namespace antdt::ps {

// The servers of a group as a worker needs them (wire::PsRoster).
struct Peers {
  Generation generation{1};          // what is said in another one changes nothing
  std::vector<std::string> servers;  // end points, by index
  Consistency consistency = Consistency::kBarrier;
  Duration give_up{};  // kUnreachable when a server is silent for so long; 0: never
  Duration again = std::chrono::seconds(2);  // when what was not answered is said again
};

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

  // Stages the gradients, commits them at the home, and waits for its decision:
  // whether they count. `pulled` is what they were computed from; with a barrier
  // commit.version says the step, without one this link sets it. commit.number is that of no push
  // before.
  [[nodiscard]] Result<wire::PsDecided> push(const std::vector<TableGradient>& gradients,
                                             const Pulled& pulled, wire::PsCommit commit);

  // Has nothing to push until it pushes again: nobody waits for it. Answers the
  // updates decided so far.
  [[nodiscard]] Result<std::uint64_t> idle();
  // Likewise, and waits until all that is decided by now is applied on every server.
  [[nodiscard]] Result<std::uint64_t> settle();

  // From any thread, once and for all: the call that waits and all later ones fail
  // with kAborted at once.
  void abort();

 private:
  // Which keys a server holds: their positions, rising; by server.
  using Split = std::vector<std::vector<std::size_t>>;

  WorkerLink(Peers peers, Member self, int wake_fd);
  [[nodiscard]] wire::Envelope next_envelope();
  [[nodiscard]] Split split(const std::vector<std::uint64_t>& keys) const;
  [[nodiscard]] Result<std::uint32_t> width_of(std::uint32_t table) const;
  // By server: its share of these rows.
  [[nodiscard]] Result<std::vector<std::vector<wire::PsRows>>> shares_of(
      const std::vector<TableGradient>& tables) const;
  [[nodiscard]] Status take(const TableKeys& keys, const Split& parts, std::size_t at,
                            const std::vector<wire::PsPulled>& replies,
                            std::vector<float>& values) const;
  struct Asked {
    std::uint32_t server;
    std::uint64_t seq;
    wire::Packet packet;
  };
  // Says it now; answer() says it again until it is answered.
  template <class Ask>
  [[nodiscard]] Asked say(std::uint32_t server, const Ask& message);
  template <class Reply>
  [[nodiscard]] Result<Reply> answer(const Asked& asked);
  // Says each server its message first, then waits for all.
  template <class Reply, class Ask>
  [[nodiscard]] Result<std::vector<Reply>> ask_all(const std::vector<Ask>& messages);

  const Peers peers_;
  const Member self_;
  const int wake_fd_;  // readable once aborted
  std::atomic<bool> aborted_ = false;
  std::uint64_t seq_ = 0;
  std::vector<std::uint32_t> widths_;  // by table
  std::vector<transport::Socket> links_;
};

}  // namespace antdt::ps
