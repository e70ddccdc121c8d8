// A worker process: the real client core (trainer/client/client_core.h) and,
// around it, a training thread that does what trainer/loop/member.h does, with
// a tally for a model and a simulated collective.
//
// The training thread is in one place at a time (Doing) and takes orders only
// when it is idle, as the real one does; the message thread answers always,
// unless the whole process is stopped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/options.h"
#include "sim/program.h"
#include "sim/ring.h"
#include "sim/surroundings.h"
#include "sim/world.h"

namespace antdt::sim {

class Worker final : public ClientProgram {
 public:
  Worker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
         Member member, std::uint32_t pid, std::string host, const HostClock& clock);

  // The generation whose training state it holds whole; 0: none.
  [[nodiscard]] Generation settled() const { return settled_; }
  // The newest it was in, settled or not.
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] const Trained& state() const { return state_; }
  [[nodiscard]] const wire::PhaseStart& phase() const { return phase_; }
  [[nodiscard]] std::string doing() const override;
  // It has read or written for so long, and more bytes came each moment.
  [[nodiscard]] Duration moves_bytes_for() const;

 private:
  enum class Doing { kBooting, kIdle, kBlocked, kComputing, kEvaluating };
  struct Share {
    PlanVersion version;
    std::uint64_t samples = 0;
  };

  // worker.cc: the process and its training thread
  void welcomed() override;
  void turn() override;
  void abort(Generation generation) override;
  void ended(bool silently) override { leave_ring(silently); }
  void obey(const client::Directive& directive);
  // worker.cc: membership
  void join(std::string problem, std::string unreadable = {});
  void on(const wire::Form& form);
  void on(const wire::Roster& roster);
  void on(const wire::PsRoster&) {}  // of another kind of job
  void on(const wire::Settle& settle);
  void on(const wire::PhaseStart& start);
  void on(const wire::Abort& abort);
  void on(const wire::Regroup& regroup);
  void on(const wire::Leave& leave);
  void heal(const Ring::Contributions& all);
  void healed();
  [[nodiscard]] std::optional<bool> holds_state();
  void begin_again(Ring* ring);
  void read_on(Ring* ring, std::uint64_t parts);
  void take_part(Ring* ring);
  // What is written beside the steps, as trainer/loop/checkpoint_writer.h: the state as it was.
  void write_beside(wire::CheckpointWritten about,
                    std::function<void(wire::CheckpointWritten)> done);
  void write_on(std::uint64_t parts);
  void say_io(const char* what, const std::string& path, std::uint64_t parts);
  void say_no_io();
  void write_final_model();
  void settle_here(Generation generation, const std::vector<WorkerId>& members);
  void dissolve(std::string problem = {}, std::string unreadable = {});
  void formation_failed(const std::string& why);
  void leave_ring(bool silently);
  void finish(const wire::PhaseStart& start);
  // worker_phases.cc
  void begin_training(const wire::PhaseStart& start);
  void compute();
  void take_records(std::uint64_t wanted);
  void exchange(bool last);
  void concluded(const trainer::Agreement& agreed, const Ring::Contributions& all,
                 std::uint64_t records);
  void next_step(const trainer::Agreement& agreed, bool last);
  void end_training();
  void apply(const Ring::Contributions& all);
  void write_ordered_checkpoint(std::uint64_t number);
  void send_progress(bool done);
  void begin_evaluation(const wire::PhaseStart& start);
  void evaluate();
  void leave_phase(bool done);
  [[nodiscard]] bool complete() const { return counted_ >= remaining_; }
  [[nodiscard]] bool wants_to_stop() const { return wants_to_leave() || core_.regroup_requested(); }
  void blocked(const char* activity);

  const JobShape shape_;
  const Sabotage sabotage_;
  bool turning_ = false;
  Doing doing_ = Doing::kBooting;

  // As trainer::Member and trainer::TrainingState.
  Trained state_;
  bool pristine_ = true;
  Generation settled_;
  std::vector<WorkerId> members_;
  Generation generation_;
  wire::Form form_;
  bool has_builder_ = false;
  Ring* ring_ = nullptr;
  std::size_t rank_ = 0;
  Generation guarded_;  // of the guard
  Generation ended_;    // newest that the guard was told is over
  Generation ready_;
  std::vector<WorkerId> ready_members_;
  Share share_;
  struct Writing {
    wire::CheckpointWritten about;
    Trained state;
    std::function<void(wire::CheckpointWritten)> done;
  };
  std::optional<Writing> writing_;
  std::optional<MonoTime> moves_since_;  // of the world
  MonoTime moved_{};
  bool writes_final_ = false;
  std::optional<wire::CheckpointWritten> final_model_;
  MonoTime final_model_said_{};

  // Of the phase.
  wire::PhaseStart phase_;
  std::uint64_t remaining_ = 0, counted_ = 0, place_ = 0, stable_place_ = 0;
  bool stopped_early_ = false;
  std::vector<Record> batch_;
  MonoTime data_until_{};
  bool has_data_ = false;
};

}  // namespace antdt::sim
