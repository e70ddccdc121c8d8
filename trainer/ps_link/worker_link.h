// A worker's side of the parameter servers: one link to each.
//
// Calls block until every server has answered; a request that is not answered in
// time is said again, which changes nothing (server.h). Keys are split by the
// server that holds their slice and keep their order.
#pragma once

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
#include "trainer/ps/gradient_merge.h"
#include "trainer/ps_link/server_loop.h"

namespace antdt::ps {

class WorkerLink {
 public:
  [[nodiscard]] static Result<WorkerLink> connect(transport::Context& context, Group group,
                                                  Member self);

  // The tables of the model, at every server.
  [[nodiscard]] Status open(const wire::PsOpen& tables);
  // The values of rows of one table: keys rise, `width` floats each, in order.
  struct Pulled {
    std::vector<float> values;
    std::vector<std::uint64_t> versions;  // by server
    std::uint64_t clock = 0;              // of the worker that is furthest behind
  };
  [[nodiscard]] Result<Pulled> pull(std::uint32_t table, std::span<const std::uint64_t> keys,
                                    std::uint64_t clock);
  // Stages, commits, and waits for the decision: whether it counts. `from` and
  // `to` are places of records whose gradients these are; `pulled` is what they
  // were computed from, with a barrier at step `step`.
  [[nodiscard]] Result<wire::PsDecided> push(std::uint32_t table, const Gradient& gradient,
                                             const Pulled& pulled, wire::PsCommit commit);

  // Has nothing to push until it pushes again: nobody waits for it.
  [[nodiscard]] Status idle();

 private:
  // Which of some keys a server holds: their positions, rising.
  using Split = std::vector<std::vector<std::size_t>>;

  WorkerLink(Group group, Member self) : group_(std::move(group)), self_(self) {}
  [[nodiscard]] wire::Envelope next_envelope();
  [[nodiscard]] Split split(std::span<const std::uint64_t> keys) const;
  template <class Reply, class Ask>
  [[nodiscard]] Result<Reply> ask(std::uint32_t server, const Ask& message);
  // Sends each server its message first, then waits for all.
  template <class Reply, class Ask>
  [[nodiscard]] Result<std::vector<Reply>> ask_all(const std::vector<Ask>& messages);

  Group group_;
  Member self_;
  std::uint64_t seq_ = 0;
  std::vector<transport::Socket> links_;
};

}  // namespace antdt::ps
