// The job daemon: wires the pure machines of a job to its journal, its agents
// and its operators.
//
// One thread, one loop. In a turn messages become events of the machines, and
// their effects become journal records and messages in an outbox. At the end
// of the turn the journal commits once and then the outbox is sent: nothing
// leaves before what it depends on is durable. A journal that cannot commit
// ends the daemon; its agent starts it again and the journal is replayed.
//
// Durable: the ledger's records, and an image of everything else (JobImage).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/antdt-jobd/agent_links.h"
#include "cmd/antdt-jobd/checkpoint_store.h"
#include "cmd/antdt-jobd/event_log.h"
#include "cmd/antdt-jobd/job_image.h"
#include "cmd/antdt-jobd/job_spec.h"
#include "cmd/antdt-jobd/progress_view.h"
#include "cmd/antdt-jobd/report.h"
#include "cmd/antdt-jobd/shards.h"
#include "core/fs.h"
#include "core/loop.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "ctl/controller.h"
#include "ctl/lifecycle.h"
#include "ctl/membership.h"
#include "launcher/job_config.h"

namespace antdt::jobd {

struct Options {
  std::string run_dir;
  std::string socket_dir;    // where jobd.sock is bound
  std::string agent_socket;  // ipc socket of the private agent
  std::string state_dir;     // where state.db is; run_dir unless that is on a network filesystem
};

class JobDaemon {
 public:
  // Takes the run's lock, reads its configuration, opens and replays the
  // journal, binds jobd.sock and begins to dial the agents.
  [[nodiscard]] static Result<std::unique_ptr<JobDaemon>> open(EventLoop& loop,
                                                               transport::Context& context,
                                                               Options options);
  // Exit code of the job, once the loop was stopped.
  [[nodiscard]] int exit_code() const { return exit_code_; }
  // Orderly stop of the job, as an operator would ask for it.
  void stop_job(const std::string& reason, Duration grace);

 private:
  // Where a worker is reached: through the agent `endpoint`, or (clients that
  // came by themselves) as `peer` of our own socket.
  struct Route {
    std::string endpoint;
    std::string peer;
  };
  struct Outgoing {
    Route route;
    wire::Packet packet;
  };

  JobDaemon(EventLoop& loop, Options options, launcher::JobConfig config, FileLock lock,
            ctl::JobSpec spec, ctl::ControllerConfig control,
            std::unique_ptr<ctl::Solution> solution, Shards shards);
  [[nodiscard]] Status listen(transport::Context& context);
  [[nodiscard]] Status dial_agents(transport::Context& context);
  void declare_job();
  void resume_from_image(const JobImage& image);

  // Messages in: job_daemon_messages.cc
  void receive_direct();
  void on_direct(const wire::Packet& packet);
  void on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                        std::string_view body);
  void on_worker_message(const wire::Envelope& envelope, std::string_view body, const Route& route);
  void on_join(Member member, Generation generation, const wire::Join& join, const Route& route);
  void on_ready(Member member, Generation generation, const wire::Ready& ready);
  void on_progress(Member member, Generation generation, const wire::Progress& progress);
  void fill_epoch(Epoch epoch);  // its report, as far as training is
  void close_epoch(Epoch epoch);
  void on_checkpoint_written(Member member, const wire::CheckpointWritten& written);
  void on_metrics(Member member, const wire::Metrics& metrics);
  void on_bye(Member member, const wire::Bye& bye);
  void answer_operator(const wire::Packet& packet, const wire::Envelope& envelope);

  // Agents and placement: job_daemon_hosts.cc
  void on_welcome(const std::string& endpoint, const wire::AgentWelcome& welcome);
  void on_host_lost(const std::string& endpoint, const std::string& reason);
  void place_workers();
  void begin_torchrun(std::uint32_t master_port);
  void request_start(Member member, const std::string& endpoint);
  void repeat_starts();
  void on_exited(Member member, const wire::ProcessExited& exited);
  [[nodiscard]] std::string host_name(const std::string& endpoint) const;

  // Effects out: job_daemon_effects.cc
  void run(const std::vector<ctl::job::Effect>& effects);
  void run(const std::vector<ctl::MembershipEffect>& effects);
  void run(const std::vector<ctl::Effect>& effects);
  void run(const ShardOutput& output);
  void step(const ctl::job::Event& event) { run(lifecycle_.step(event, loop_.now())); }
  void step(const ctl::MembershipEvent& event) { run(membership_.step(event)); }
  void step(const ctl::Event& event) { run(controller_.step(event, loop_.now())); }
  void on_settled(const ctl::Settled& settled);
  void on_drained(std::uint64_t phase);
  void open_phase(const wire::PhaseStart& start);
  void announce_plan(const wire::Plan& plan);
  void record_action(const ctl::RecordAction& action);
  void note(std::string_view kind, std::string_view text, std::string_view extra_json = "");
  void end_job(const ctl::Outcome& outcome);

  template <class T>
  void send_to(Member member, Generation generation, const T& message, std::uint64_t seq = 0);
  template <class T>
  void send_to_members(const T& message);
  [[nodiscard]] std::vector<Member> members() const;

  void tick();
  void control_tick();
  void finish_turn();  // commit, then send
  [[nodiscard]] double seconds() const;
  [[nodiscard]] JobReport report();
  [[nodiscard]] std::vector<WorkerReport> worker_reports();
  [[nodiscard]] JobImage image() const;

  EventLoop& loop_;
  Options options_;
  launcher::JobConfig config_;
  std::string config_json_;
  FileLock lock_;
  ctl::JobSpec spec_;

  Shards shards_;
  ctl::Lifecycle lifecycle_;
  ctl::Membership membership_;
  ctl::Controller controller_;
  ProgressView progress_;
  EventLog events_;
  CheckpointStore checkpoints_;
  std::optional<AgentLinks> links_;
  std::optional<transport::Socket> socket_;

  MonoTime began_;
  double seconds_before_ = 0;                        // of earlier incarnations
  std::map<std::string, wire::AgentWelcome> hosts_;  // by endpoint
  std::map<WorkerId, Route> routes_;
  std::map<Member, MonoTime> start_asked_;
  std::map<WorkerId, std::vector<wire::EnvVar>> extra_env_;
  std::vector<ctl::PlacedWorker> waiting_for_port_;
  std::vector<Member> loose_members_;
  std::map<WorkerId, WorkerReport> measured_;
  std::vector<ActionReport> actions_;
  std::vector<EpochReport> epochs_;
  std::vector<Outgoing> outbox_;
  std::string message_;
  bool image_dirty_ = false;
  bool ended_ = false;
  int exit_code_ = 4;
};

template <class T>
void JobDaemon::send_to(Member member, Generation generation, const T& message, std::uint64_t seq) {
  const auto route = routes_.find(member.worker);
  if (route == routes_.end()) return;
  wire::Envelope envelope;
  envelope.job = config_.job.id;
  envelope.worker = member.worker;
  envelope.attempt = member.attempt;
  envelope.generation = generation;
  envelope.seq = seq;
  outbox_.push_back({route->second, wire::make_packet(std::move(envelope), message)});
}

template <class T>
void JobDaemon::send_to_members(const T& message) {
  for (const Member member : members()) send_to(member, membership_.generation(), message);
}

}  // namespace antdt::jobd
