// The orders of the job daemon that a worker has received, in the order in which they are returned,
// and the standing message, which is repeated until one of them answers it.
//
// Messages that must not be lost and whose answer is an order (join, address, ready, progress that
// is done) are *standing*: they are repeated until that order has come, or one that makes them
// pointless. For that reason orders may come twice, and the second one is dropped. With parameter
// servers, a phase counts only after the roster of its generation. Without the roster, the join is
// repeated; or, in an earlier generation, that generation ends and a join follows, which brings
// both. After a join that names a problem, the roster of the same generation counts once more when
// the phase follows: the worker tries again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/messages.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/client/client.h"
#include "trainer/client/effects.h"

namespace antdt::client {

class Orders {
 public:
  using Order = decltype(Directive::order);
  static constexpr Duration kRepeatAfter = std::chrono::milliseconds(500);

  // An order arrived. It is returned later, unless it is a repetition or comes too early.
  void hear(Generation generation, Order order, Effects& out);
  void hear_plan(const wire::Plan& plan);

  void stand(OutboundBody body, MonoTime now, Effects& out);
  void drop_standing() { standing_.reset(); }
  void repeat_standing(MonoTime now, Effects& out);
  [[nodiscard]] std::optional<MonoTime> repeat_at() const;

  // The next order. Later messages carry its generation.
  [[nodiscard]] std::optional<Directive> take_next();
  [[nodiscard]] bool has_next() const { return !queue_.empty(); }

  // the newest generation that an order named
  [[nodiscard]] Generation newest() const { return newest_; }
  // generation of the last order that was returned
  [[nodiscard]] Generation current() const { return current_; }
  // Whether the generation of the last returned order will end, or is over.
  [[nodiscard]] bool regroup_requested() const {
    return regroup_ > Generation{} && regroup_ >= current_;
  }
  [[nodiscard]] const std::optional<wire::Leave>& leave_requested() const { return leave_; }
  // The generation of an abort that was not returned yet.
  [[nodiscard]] std::optional<Generation> abort_waiting() const;
  [[nodiscard]] PlanVersion held_plan() const;
  [[nodiscard]] std::optional<wire::Plan> plan(PlanVersion version) const;
  // Where the servers of that generation are, as far as is known: the newest roster, if its number
  // is higher than `than`.
  [[nodiscard]] std::optional<wire::PsRoster> servers(Generation generation,
                                                      std::uint64_t than) const;

 private:
  struct Standing {
    SendMessage message;
    MonoTime sent_at;
  };
  void enqueue(Generation generation, Order order, Effects& out);
  void abort(Generation generation, const wire::Abort& abort, Effects& out);
  [[nodiscard]] bool awaits_settle(Generation generation) const;
  // The newest generation whose servers are known; 0: none, or the job has no servers.
  [[nodiscard]] Generation rostered() const;
  // Whether a phase of this generation is meaningful for this worker.
  [[nodiscard]] bool is_prepared_for(Generation generation) const;
  void roster_is_missing(Generation generation, Effects& out);
  void expect_servers_again();
  void hold_servers(Generation generation, const wire::PsRoster& roster);

  Generation newest_;
  Generation current_;
  Generation regroup_;  // the newest generation that was told to end together
  std::deque<Directive> queue_;
  std::optional<Standing> standing_;
  // The last order of each kind, by which repetitions are recognised: (generation, phase).
  std::map<std::size_t, std::pair<Generation, std::uint64_t>> seen_;
  // A phase that came before the Settle of its generation; it begins after that. If it began
  // before, places would count from another beginning than those of the others.
  std::optional<std::pair<Generation, wire::PhaseStart>> early_phase_;
  std::map<PlanVersion, wire::Plan> plans_;
  std::optional<std::pair<Generation, wire::PsRoster>> servers_;  // the newest
  // The generation with whose servers this worker could not begin, until its phase comes again.
  std::optional<Generation> tries_again_;
  std::optional<wire::Leave> leave_;
};

}  // namespace antdt::client
