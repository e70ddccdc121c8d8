// The job daemon: the shell around a JobMachine (ctl/job/job_machine.h), which
// decides everything. Here are its sockets, its journal and its files.
//
// One loop. In a turn messages become inputs of the machine, and
// its outputs become journal records and messages in an outbox. At the end of
// the turn the journal commits once and then the outbox is sent: nothing
// leaves before what it depends on is durable. A journal that cannot commit
// ends the daemon; its agent starts it again and the journal is replayed.
//
// Files are touched by threads (disks.h) once the loop runs. For the journal's commit the loop
// waits; meanwhile it says to its agents that it lives, and answers who asks for the status.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/admin_messages.h"
#include "core/wire/agent_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"
#include "ctl/job/job_machine.h"
#include "jobd/agent_links.h"
#include "jobd/disk/checkpoint_store.h"
#include "jobd/disk/disks.h"
#include "jobd/disk/event_log.h"
#include "jobd/disk/history_thread.h"
#include "jobd/disk/run_copies.h"
#include "jobd/keeper_link.h"
#include "jobd/programs/job_spec.h"
#include "jobd/programs/own_program.h"
#include "launcher/config/job_config.h"
#include "launcher/start/resume_request.h"
#include "launcher/start/skips.h"
#include "shard_server/journal/journal.h"

namespace antdt::jobd {

struct Options {
  std::string run_dir;
  std::string socket_dir;    // where jobd.sock is bound
  std::string agent_socket;  // ipc socket of the private agent
  std::string state_dir;     // where state.db is; run_dir unless that is on a network filesystem
  std::function<void()> before_abort = {};  // so that the log's last words are written
};

class JobDaemon {
 public:
  // Takes the run's lock, reads its configuration, opens and replays the
  // journal, binds jobd.sock and begins to dial the agents. `clock` is the machine's; that of
  // the loop may stand still with it (core/standstill_clock.h).
  [[nodiscard]] static Result<std::unique_ptr<JobDaemon>> open(EventLoop& loop, const Clock& clock,
                                                               transport::Context& context,
                                                               Options options);
  // Exit code of the job, once the loop was stopped.
  [[nodiscard]] int exit_code() const { return exit_code_; }
  // Orderly stop of the job, as an operator would ask for it.
  void stop_job(const std::string& reason, Duration grace);
  // After the loop: false if a disk does not answer, and the process can only be left by _exit.
  [[nodiscard]] bool end_disks(Duration patience) {
    return copies_->end(patience) && disks_.end(patience);
  }

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

  // What a turn wants sent, and what must be safe before it is.
  struct Turn {
    std::vector<Outgoing> outbox;
    bool waits_for_history = false;
    MonoTime at_most_until{};
  };

  JobDaemon(EventLoop& loop, const Clock& clock, Options options, launcher::JobConfig config,
            FileLock lock, shard_server::Journal journal, HistoryKeeper history,
            ctl::JobMachine machine);
  [[nodiscard]] Status listen(transport::Context& context);
  [[nodiscard]] Status dial_agents(transport::Context& context);
  [[nodiscard]] Status begin(const std::optional<launcher::ResumeRequest>& request,
                             bool begins_again);
  void feed(const ctl::job::Input& input);
  void tick();
  void declare_skips();
  void keep_skips();
  void control_tick();
  void start_own_program();  // where the job's solution is one
  [[nodiscard]] ctl::JobReport report() const;
  void sync_history();
  void finish_turn();  // commit, then send
  [[nodiscard]] Status commit_turn();
  // Runs `work` on the journal's thread and waits for it.
  [[nodiscard]] Status on_journal(const char* what, const std::function<Status()>& work);
  void wait_for_journal();
  void send_turn();
  void send_what_may_be();
  void send_now(Outgoing& out);
  void look_at_disks();
  void keep_summary(const ctl::JobReport& last);
  void pause_if_disk_is_full();
  void go_on_if_there_is_room();

  // Messages in: job_daemon_messages.cc
  void receive_direct();
  void receive_status_alone();  // while the journal is waited for
  void on_direct(const wire::Packet& packet);
  void on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                        std::string_view body);
  void on_worker_message(const wire::Envelope& envelope, std::string_view body, const Route& route);
  // Operators' wishes; an error says why not.
  [[nodiscard]] Status asked(const wire::StopJob& m);
  [[nodiscard]] Status asked(const wire::EvictWorkers& m);
  [[nodiscard]] Status asked(const wire::InjectRules& m);
  [[nodiscard]] Status asked(const wire::ResizeJob& m);
  [[nodiscard]] Status asked(const wire::ApproveAction& m);
  [[nodiscard]] Status asked(const wire::SkipRecords& m);
  [[nodiscard]] wire::StatusReply status_for(const wire::StatusRequest& request);
  void answer_operator(const wire::Packet& packet, const wire::Envelope& envelope);
  template <class T>
  void answer(const wire::Packet& packet, const wire::Envelope& envelope, const T& message);

  // Administrators of the cluster: job_daemon_admins.cc
  [[nodiscard]] Status obey(const wire::AdminOrder& order);
  void on_admin_order(const std::string& endpoint, const wire::Envelope& envelope,
                      std::string_view body);

  // Agents, placement, starting: job_daemon_hosts.cc
  void on_welcome(const std::string& endpoint, const wire::AgentWelcome& welcome);
  void on_host_lost(const std::string& endpoint, const std::string& reason);
  [[nodiscard]] ctl::HostState host_state(const std::string& endpoint,
                                          const wire::AgentWelcome& welcome) const;
  void place_workers();
  void on_port(std::uint32_t master_port);
  void request_start(Member member, const std::string& endpoint);
  void repeat_requests();

  // Checkpoints of hosts that share nothing: job_daemon_copies.cc
  void open_copies();
  void list_checkpoints();
  using StoreOrder = std::shared_ptr<const ctl::job::StoreCheckpoint>;
  void keep_checkpoint(const StoreOrder& order);
  void find_checkpoint();
  void begin_from(const CheckpointStore::Newest& newest);
  [[nodiscard]] static bool ends_order(const ctl::job::WorkerMessage& body);
  void hold(Member member, const std::string& host, const std::string& directory, Outgoing order);
  void leave_when_copied(MonoTime until);

  // Outputs: job_daemon_outputs.cc
  void perform(const ctl::job::PersistRecord& o);
  void perform(ctl::job::SendToWorker& o);
  void perform(const ctl::lifecycle::StartWorker& o);
  void perform(const ctl::lifecycle::StopWorker& o);
  void perform(const ctl::lifecycle::PrepareGang& o);
  void perform(const ctl::job::StoreCheckpoint& o);
  void perform(const ctl::job::FindCheckpoint& o);
  void perform(const ctl::job::RememberEntry& o);
  void perform(const ctl::job::PublishNote& o);
  void perform(const ctl::lifecycle::EndJob& o);
  template <class T>
  void send(const Route& route, Member member, Generation generation, const T& message,
            std::uint64_t seq = 0);
  [[nodiscard]] std::optional<Route> route_to(Member member) const;

  EventLoop& loop_;
  Options options_;
  launcher::JobConfig config_;
  std::string config_json_;
  FileLock lock_;
  shard_server::Journal journal_;  // its thread's, while that runs
  ctl::JobMachine machine_;
  Disks disks_;
  EventLog events_;
  HistoryThread history_;
  MonoTime history_asked_{};     // to be synced, last
  CheckpointStore checkpoints_;  // its thread uses copies
  std::vector<launcher::Skip> skips_;
  bool skips_changed_ = false;  // since they were written
  std::unique_ptr<OwnProgram> own_program_;
  std::unique_ptr<RunCopies> copies_;
  // Orders to read a checkpoint that is on its way to who reads it: job_daemon_copies.cc.
  struct Held {
    std::uint64_t number = 0;
    std::string directory;
    Outgoing order;
  };
  std::map<Member, Held> held_;
  std::uint64_t last_held_ = 0;
  std::optional<AgentLinks> links_;
  std::optional<KeeperLink> keeper_;  // where links_ does not lead to the private agent
  std::optional<transport::Socket> socket_;

  std::map<std::string, wire::AgentWelcome> hosts_;  // by endpoint
  std::map<WorkerId, Route> routes_;
  std::optional<std::pair<Member, Route>> inbound_;  // whose message is handled now
  std::map<Member, MonoTime> asked_;                 // to start or to end, last
  std::map<WorkerId, std::vector<wire::EnvVar>> extra_env_;
  std::vector<ctl::PlacedWorker> waiting_for_port_;
  std::vector<Outgoing> outbox_;
  std::deque<Turn> turns_;              // that are committed, and wait to be sent
  std::size_t first_turn_ = 0;          // number of turns_.front()
  std::vector<Outgoing> skip_answers_;  // for when the skips are kept
  std::deque<wire::Packet> deferred_;   // came while the journal was waited for
  // The disk is full: since then, or when room was looked for last.
  std::optional<MonoTime> paused_;
  bool ended_ = false;
  int exit_code_ = 4;
};

template <class T>
void JobDaemon::send(const Route& route, Member member, Generation generation, const T& message,
                     std::uint64_t seq) {
  wire::Envelope envelope;
  envelope.job = config_.job.id;
  envelope.worker = member.worker;
  envelope.attempt = member.attempt;
  envelope.generation = generation;
  envelope.seq = seq;
  outbox_.push_back({route, wire::make_packet(std::move(envelope), message)});
}

}  // namespace antdt::jobd
