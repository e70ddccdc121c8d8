// One step of the job: what it says to the outside, and the queue of what is still to be done.
//
// What an effect of one machine means to another one is an item of the queue, and so is each
// effect. The coordinator takes one item after the other until none is left (JobMachine::step);
// nothing is done by a machine while another one's effects are being gone through. Items are taken
// depth first: what an item leads to comes before what was waiting when it was taken. So all that
// follows from one effect, down to the last message, comes before the machine's next effect.
#pragma once

#include <deque>
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

// What the coordinator itself does next, when the machines have taken what came before it.

// The ledger has every record of the phase committed or skipped.
struct PhaseCompleted {
  std::uint64_t phase = 0;
};
// The ledger has taken a worker's progress.
struct ProgressCounted {
  Member member;
  Generation generation;
  wire::Progress progress;
};
// The lifecycle has heard that a worker joined that is to be a member of the group.
struct GroupJoinHeard {
  Member member;
  Generation generation;
  wire::Join join;
};
// The same of a loose client. `phase_before`: that was open before it joined.
struct LooseJoinHeard {
  Member member;
  std::uint64_t phase_before = 0;
};
// The lifecycle has heard that a host is there.
struct HostListed {
  HostWelcomed welcome;
};
// The group has been told whom to expect by an incarnation that follows another one.
struct RecoveryHeard {};
// The controller knows the group that an earlier incarnation had settled.
struct RecoveryPlanned {};
// The tick has been heard by lifecycle and group.
struct VitalsDue {};
struct DeadlinesDue {};
// The controller has looked at the job.
struct VerdictsDue {};
// The ledger and the servers know the controller's newest plan.
struct PlanKept {};
// All effects of a step of the group's machine have been carried out.
struct GroupStepped {};
// The controller has a plan for the generation that settles, or has said that there can be none.
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

class Agenda {
 public:
  void add(Item item) { led_to_.push_back(std::move(item)); }
  // None: the step is over.
  [[nodiscard]] std::optional<Item> next();

 private:
  std::deque<Item> waiting_;
  std::vector<Item> led_to_;  // by the item that was taken last
};

template <class T, class Variant>
inline constexpr bool is_alternative = false;
template <class T, class... Ts>
inline constexpr bool is_alternative<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

class Work {
 public:
  Work(MonoTime at, Effects& out, Agenda& agenda) : now(at), out_(out), agenda_(agenda) {}

  const MonoTime now;

  // What the shell is to do.
  template <class T>
  void say(T&& effect) {
    out_.emplace_back(std::forward<T>(effect));
  }
  void send(Member to, Generation generation, WorkerMessage body, std::uint64_t seq = 0);
  // To one that goes on to read `checkpoint`; "": it reads none.
  void send_to_reader(Member to, Generation generation, WorkerMessage body,
                      const std::string& checkpoint);
  void note(std::string kind, std::string text, std::string extra_json = "");
  void remember(std::vector<shard_server::history::Entry> entries);

  // What a machine, or the coordinator, is to do after the present item.
  template <class T>
  void then(T item) {
    agenda_.add(Item(in_variant(std::move(item))));
  }

  // The image record of this turn is another one.
  void save_image() { image_changed_ = true; }
  [[nodiscard]] bool image_changed() const { return image_changed_; }
  // The last thing that happened, in words.
  [[nodiscard]] const std::optional<std::string>& last_note() const { return last_note_; }

 private:
  // As the input or effect of the machine whose it is.
  template <class T>
  static auto in_variant(T item) {
    if constexpr (is_alternative<T, Item>) {
      return item;
    } else if constexpr (is_alternative<T, lifecycle::Input>) {
      return lifecycle::Input(std::move(item));
    } else if constexpr (is_alternative<T, lifecycle::Effect>) {
      return lifecycle::Effect(std::move(item));
    } else if constexpr (is_alternative<T, membership::Input>) {
      return membership::Input(std::move(item));
    } else if constexpr (is_alternative<T, servers::Input>) {
      return servers::Input(std::move(item));
    } else if constexpr (is_alternative<T, control::Input>) {
      return control::Input(std::move(item));
    } else {
      static_assert(is_alternative<T, FollowUp>,
                    "an input of a machine, or what the coordinator does next");
      return FollowUp(std::move(item));
    }
  }

  Effects& out_;
  Agenda& agenda_;
  bool image_changed_ = false;
  std::optional<std::string> last_note_;
};

}  // namespace antdt::ctl::job
