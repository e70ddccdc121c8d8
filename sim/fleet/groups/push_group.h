// Workers that pull from parameter servers and push to them. The code that ships decides which
// pushes make a step (trainer/ps/closer.h); a pull and a push take the times of Costs.
//
//   joined ──PsRoster──> linked ──PhaseStart──> (pull ──> compute ──> push ──> decided) ──> done
//                                                 ^                              │
//                                                 └──────────────────────────────┘
//
// With a barrier a push is decided with the pushes of the others (ps-bsp), and may be late: its
// records go back to the ledger, as in trainer/worker/servers/ps_train_phase.h. With bounded
// staleness a pull waits until no worker is too many pushes behind (ps-ssp); otherwise nobody waits
// (ps-asp). Costs says how long a batch takes beside its own time if it waits for nobody. Without a
// barrier, messages are sent while batches are computed, so that is the part which is not hidden.
//
// All servers are always in the same state, and the first one decides for all workers. How long
// they take does not depend on how many they are, nor on what is asked of them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/fleet/player.h"
#include "trainer/ps/closer.h"

namespace antdt::fleet {

class PushGroup final : public Group {
 public:
  explicit PushGroup(Player& player) : player_(player) {}

  void hear(Worker& process, Generation generation, const ctl::job::WorkerMessage& body) override;
  void joined(Worker& process) override;
  void gone(Worker& process) override;
  void recorded(Generation, Step) override {}
  [[nodiscard]] Step step() const override { return Step{updates()}; }
  [[nodiscard]] const char* activity(const Worker& worker) const override;

 private:
  enum class At : std::uint8_t { kNowhere, kPulling, kComputing, kPushing, kIdle };
  // What a worker does with its present batch.
  struct Pusher {
    At at = At::kNowhere;
    std::uint64_t turn = 0;     // what was scheduled in an earlier turn is void
    std::uint64_t pushes = 0;   // in this group
    std::uint64_t version = 0;  // of the rows that it pulled
    MonoTime began{};           // when it took the batch
    bool whole = false;         // the batch has as many records as the plan says
    bool is_first = true;       // under its plan
    bool trains = false;        // a training phase is open for it
    bool held = false;          // its pull waits for slower workers
    bool returns = true;        // it has not pushed since it was idle, or new
  };

  void on(Worker& process, Generation generation, const wire::PsServe& serve);
  void on(Worker& process, Generation generation, const wire::PsCut& cut);
  void on(Worker& worker, Generation generation, const wire::PsRoster& roster);
  void on(Worker& worker, Generation generation, const wire::PhaseStart& start);
  void on(Worker& worker, Generation generation, const wire::Plan& plan);
  void on(Worker& worker, Generation generation, const wire::Abort& abort);
  void on(Worker& process, Generation generation, const wire::Leave& leave);
  template <class Other>  // messages for other kinds of group
  void on(Worker&, Generation, const Other&) {}

  void begin_group(Generation generation, const wire::PsServe& serve);
  void join(Worker& worker);
  void begin_anew(const Worker& worker);
  // A batch.
  void take(Worker& worker);
  void pull(Worker& worker);
  void compute(Worker& worker);
  void push(Worker& worker);
  void decided(Worker& worker, const wire::PsDecided& said);
  void rest(Worker& worker);
  void leave_if_asked(Worker& worker);
  void tell_progress(Worker& worker, bool done);

  void decide(const ps::closer::Input& input);
  void let_pull();  // the workers whose pulls wait no longer
  [[nodiscard]] bool waits(const Pusher& pusher, std::optional<std::uint64_t> least) const;
  [[nodiscard]] std::optional<std::uint64_t> least_pushes(const Worker* but) const;
  [[nodiscard]] bool barrier() const { return sync_ == SyncStrategy::kPsBsp; }
  [[nodiscard]] std::uint64_t updates() const { return closer_ ? closer_->updates() : 0; }
  [[nodiscard]] Pusher& pusher(const Worker& worker) { return pushers_[worker.member.worker]; }
  // Does nothing if by then the worker has gone or does something else.
  void after(Worker& worker, double seconds, void (PushGroup::*what)(Worker&));

  Player& player_;
  SyncStrategy sync_ = SyncStrategy::kPsBsp;
  std::uint64_t staleness_ = 0;
  Generation generation_;  // of the servers
  std::optional<ps::Closer> closer_;
  std::map<WorkerId, Pusher> pushers_;
  wire::PhaseStart phase_;
};

}  // namespace antdt::fleet
