// One step of a job's lifecycle. Each subject decides about its own events. The subjects exist for
// one step, append its effects in order, and ask one another for decisions that are not their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/lifecycle/state/life_state.h"

namespace antdt::ctl::lifecycle {

class Turn;

// A program of which no steps are known is taken to work once it ran this long.
inline constexpr double kRanForSeconds = 10;

class Subject {
 public:
  Subject(Turn& turn, LifeState& life, Effects& out) : turn_(turn), life_(life), out_(out) {}

 protected:
  Turn& turn_;
  LifeState& life_;
  Effects& out_;
};

// Where processes are started, and started again: one by one, or all together.
class Starts : public Subject {
 public:
  using Subject::Subject;
  void on(const WorkersPlaced& e);
  void on(const WorkerStarted& e);
  void on(const HostCameUp& e);
  void on(const WorkerStartRefused& e);
  void on(const GangPrepared& e);
  void on(const RunResumed& e);
  void on(const DaemonFollowed& e);
  // Tells the group which workers are, or will be, members.
  void expect();
  // Starts the waiting processes for which hosts have room.
  void start_waiting();
  // Ends all processes; then all are started again.
  void stop_gang(const WorkerProcess& cause);
  void restart_gang_if_all_left();

 private:
  void help_stranded_server();
};

// Processes that end: which class of failure it is, and what follows.
class Failing : public Subject {
 public:
  using Subject::Subject;
  void on(const HostLost& e);
  void on(const WorkerExited& e);
  void on(const WorkerVanished& e);
  void on(const WorkerHung& e);
  void record_failure(const WorkerProcess& worker, FailureClass cls);
  // The outcome that follows from the first cause of the present incident.
  [[nodiscard]] Outcome outcome_of_failures() const;

 private:
  [[nodiscard]] bool made_progress() const;
  void ended(WorkerProcess& worker, FailureClass cls);
  void replace(WorkerProcess& worker, FailureClass cls);
};

// Generations, phases and checkpoints.
class Training : public Subject {
 public:
  using Subject::Subject;
  void on(const WorkerJoined& e);
  void on(const GenerationSettled& e);
  void on(const GenerationEnded& e);
  void on(const StepCompleted& e);
  void on(const RecordsCommitted& e);
  void on(const PhaseDrained& e);
  void on(const TrainingEnded& e);
  void on(const WorkerDone& e);
  void on(const CheckpointWriteBegun& e);
  void on(const CheckpointConcluded& e);
  void on(const CheckpointBytesMoved& e);
  void on(const CheckpointRestored& e);
  void open_phase(std::uint64_t phase);
  void advance_if_complete();
  void order_checkpoint();
  // With each tick: counts time in which the programs of which no steps are known run well, as far
  // as they have not ended well or left.
  void look_at_programs();
  // With each tick: orders a checkpoint if one is due.
  void look_at_checkpoints();

 private:
  void progress();
  // Ends the incident, if there is one.
  void goes_on();
  // Whether all records of the phase are trained and a worker still has to end it for itself.
  [[nodiscard]] bool awaits_workers() const;
};

// How a job ends: it is stopped or fails, and is over when all processes have left.
class Stopping : public Subject {
 public:
  using Subject::Subject;
  void on(const StopRequested& e);
  void on(const JobFailed& e);
  // True if the job ends, or has ended, and nothing else is to be done.
  [[nodiscard]] bool look_at_deadlines();
  void fail(Outcome outcome);
  void stop_all(Duration grace);
  void stop_worker(WorkerProcess& worker, Duration grace);
  void end_if_all_left();

 private:
  void stop_with(Outcome outcome, Duration grace);
  [[nodiscard]] bool can_checkpoint() const;
  [[nodiscard]] bool bring_one_back();
  void let_servers_go();
  [[nodiscard]] Outcome outcome_at_the_end() const;
};

// Requests of operators and of the controller while a job runs.
class Wishes : public Subject {
 public:
  using Subject::Subject;
  void on(const EvictionRequested& e);
  void on(const RestartRequested& e);
  void on(const WorkerCountRequested& e);
  void on(const HostDrained& e);
  // Lets the workers on drained hosts leave, as far as somebody is left to train.
  void leave_drained_hosts();
  void ask_to_leave(WorkerProcess& worker, const std::string& reason, Duration deadline);
  // With each tick: asks again those that were asked to leave and are still there.
  void repeat_requests();
  void left_as_asked(WorkerProcess& worker);
  // No host has room for this server, without which nobody trains: a worker gives it its place, and
  // waits for room itself. Not the last worker of the job, nor of a domain.
  void give_place_to(const WorkerProcess& server);

 private:
  void leave_drained(const HostState& host);
  [[nodiscard]] WorkerProcess* who_gives_place();
};

// Parameter servers that are moved to another host.
class ServerMoves : public Subject {
 public:
  using Subject::Subject;
  void on(const ServerTakenOver& e);
  // To the host with the end point `goes_to` if that has room, else to another one.
  void move(WorkerProcess& server, const std::string& goes_to, const std::string& reason);
  // True if one of a server's two processes has failed and the other one is enough.
  [[nodiscard]] bool move_failed(WorkerProcess& server, FailureClass cls);
  void end_moves();

 private:
  void leave_for_second(WorkerProcess& server, const std::string& reason);
};

// The number of parameter servers, and how it changes.
class ServerChange : public Subject {
 public:
  using Subject::Subject;
  void on(const ServerCountRequested& e);
  void order_last_cut();
  void look_at_last_cut();
  // True if it is the checkpoint for which the change waited.
  [[nodiscard]] bool is_last_cut(const CheckpointConcluded& e);
  void give_up_servers(const std::string& why);
  void change_servers();
  void change_servers_at_resume();
  void added_failed(WorkerProcess& server, FailureClass cls);

 private:
  void last_cut_failed(const std::string& why);
  void server_change_failed(const std::string& why);
  void let_apart_go(const std::string& reason);
};

class Turn {
 public:
  Turn(LifeState& life, Effects& out)
      : starts(*this, life, out),
        failing(*this, life, out),
        training(*this, life, out),
        stopping(*this, life, out),
        wishes(*this, life, out),
        moves(*this, life, out),
        servers(*this, life, out) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Each event belongs to one subject; a tick concerns several.
  template <class Event>
  void take(const Event& e) {
    offer(e, starts, failing, training, stopping, wishes, moves, servers);
  }
  void take(const TimePassed& e);

  Starts starts;
  Failing failing;
  Training training;
  Stopping stopping;
  Wishes wishes;
  ServerMoves moves;
  ServerChange servers;

 private:
  template <class Event, class... Subjects>
  static void offer(const Event& e, Subjects&... subjects) {
    static_assert((is_of<Subjects, Event> + ...) == 1, "an event is one subject's");
    (offer_one(e, subjects), ...);
  }
  template <class S, class Event>
  static constexpr int is_of = requires(S& s, const Event& e) {
    s.on(e);
  };
  template <class Event, class S>
  static void offer_one(const Event& e, S& subject) {
    if constexpr (is_of<S, Event> == 1) subject.on(e);
  }
};

}  // namespace antdt::ctl::lifecycle
