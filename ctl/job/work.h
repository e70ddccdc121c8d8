// One step of the job: its effects for the shell, and the queue of what is still to be done.
//
// Each effect of a machine is an item of the queue, and so is what the effect means to another
// machine. The coordinator takes one item after the other until none is left (JobMachine::step); no
// machine runs while another machine's effects are being processed. Items are taken depth first:
// what an item leads to comes before the items that were waiting when it was taken. So everything
// that follows from one effect, down to the last message, comes before the machine's next effect.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "ctl/control/controller.h"
#include "ctl/job/job_events.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/membership/membership.h"
#include "ctl/servers/server_group.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl::job {

// What the coordinator itself does next, after the machines have processed the earlier items.

// Every record of the phase is committed or skipped in the ledger.
struct PhaseCompleted {
  std::uint64_t phase = 0;
};
// The ledger has counted a worker's progress.
struct ProgressCounted {
  Member member;
  Generation generation;
  wire::Progress progress;
};
// The lifecycle has heard the join of a worker that is to be a member of the group.
struct GroupJoinHeard {
  Member member;
  Generation generation;
  wire::Join join;
};
// The lifecycle has heard the join of a loose client. `phase_before`: the phase that was open
// before the join.
struct LooseJoinHeard {
  Member member;
  std::uint64_t phase_before = 0;
};
// The lifecycle has heard that a host is up.
struct HostListed {
  HostWelcomed welcome;
};
// In an incarnation that follows another one, the group has been told whom to expect.
struct RecoveryHeard {};
// The controller has been told the group that an earlier incarnation had settled.
struct RecoveryPlanned {};
// Lifecycle and group have heard the tick.
struct VitalsDue {};
struct DeadlinesDue {};
// The controller has looked at the job.
struct VerdictsDue {};
// The ledger and the servers know the controller's newest plan.
struct PlanKept {};
// All effects of a step of the group's machine have been carried out.
struct GroupStepped {};
// The controller has a plan for the generation that settles, or has reported that none is possible.
struct SettlePlanned {
  membership::SettleGeneration settled;
};
// The controller has a plan for the workers of a new group of servers, or for one more worker.
struct ServerWorkersPlanned {
  servers::OpenGroup formed;
};
struct ServerWorkerPlanned {
  Member worker;
};
using FollowUp =
    std::variant<PhaseCompleted, ProgressCounted, GroupJoinHeard, LooseJoinHeard, HostListed,
                 RecoveryHeard, RecoveryPlanned, VitalsDue, DeadlinesDue, VerdictsDue, PlanKept,
                 GroupStepped, SettlePlanned, ServerWorkersPlanned, ServerWorkerPlanned>;

using Item = std::variant<lifecycle::Input, lifecycle::Effect, membership::Input,
                          membership::Effect, servers::Input, servers::Effect, control::Input,
                          control::Effect, shard_server::ledger::Effect, FollowUp>;

// Items are built where they stay until the step is over or their memory is used again: they are
// large, and to move one costs as much as many an item's work.
class Agenda {
 public:
  // As the input or effect of `Machine`; what the item that was taken last leads to.
  template <class Machine, class T>
  void add(T&& item) {
    led_to_.emplace_back(std::in_place_type<Machine>, std::forward<T>(item));
  }
  // It is valid until the next call. Null: the step is over.
  [[nodiscard]] Item* next();

 private:
  // The items that one item led to, in order.
  struct Round {
    std::vector<Item> items;
    std::size_t taken = 0;
  };
  std::vector<Round> rounds_;  // each was led to by the last item taken of the one before it
  std::vector<Item> led_to_;
  std::vector<std::vector<Item>> spare_;  // empty, with memory
};

template <class T, class Variant>
inline constexpr bool is_alternative = false;
template <class T, class... Ts>
inline constexpr bool is_alternative<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

// Whose an input or effect is: the first of the variants that has it. T itself if it is a whole
// variant.
template <class T, class First, class... Others>
struct Whose : Whose<T, Others...> {};
template <class T, class First, class... Others>
requires(std::is_same_v<T, First> || is_alternative<T, First>) struct Whose<T, First, Others...> {
  using type = First;
};
template <class T>
using Of = typename Whose<T, lifecycle::Input, lifecycle::Effect, membership::Input, servers::Input,
                          control::Input, FollowUp, membership::Effect, servers::Effect,
                          control::Effect, shard_server::ledger::Effect>::type;

class Work {
 public:
  Work(MonoTime at, Effects& out, Agenda& agenda) : now(at), out_(out), agenda_(agenda) {}

  const MonoTime now;

  // Adds an effect for the shell.
  template <class T>
  void say(T&& effect) {
    out_.emplace_back(std::forward<T>(effect));
  }
  void send(Member to, Generation generation, WorkerMessage body, std::uint64_t seq = 0);
  // Sends to a process that will read `checkpoint`; "" if it reads none.
  void send_to_reader(Member to, Generation generation, WorkerMessage body,
                      const std::string& checkpoint);
  void note(std::string kind, std::string text, std::string extra_json = "");
  void remember(std::vector<shard_server::history::Entry> entries);

  // Adds an input or effect for a machine or the coordinator, after the present item.
  template <class T>
  void then(T&& item) {
    agenda_.add<Of<std::remove_cvref_t<T>>>(std::forward<T>(item));
  }

  // The image changed, so this turn writes an image record.
  void save_image() { image_changed_ = true; }
  [[nodiscard]] bool image_changed() const { return image_changed_; }
  // The last thing that happened, in words.
  [[nodiscard]] const std::optional<std::string>& last_note() const { return last_note_; }

 private:
  Effects& out_;
  Agenda& agenda_;
  bool image_changed_ = false;
  std::optional<std::string> last_note_;
};

}  // namespace antdt::ctl::job
