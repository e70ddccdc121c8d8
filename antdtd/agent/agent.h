// A whole agent: its two sockets, the processes it keeps and, for a private agent, the job daemon.
//
// Every event goes through Supervision::step, and its effects are carried out in order before the
// next event. There is one thread, the loop's. Only what the agent writes into a job's run
// directory, which may be on a disk that does not answer, is written by another thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antdtd/agent/daemon_links.h"
#include "antdtd/agent/private_job.h"
#include "antdtd/agent/user_sockets.h"
#include "antdtd/devices/accelerators.h"
#include "antdtd/devices/device_claims.h"
#include "antdtd/files/file_services.h"
#include "antdtd/host/agent_metrics.h"
#include "antdtd/host/process_probe.h"
#include "antdtd/host/report_sums.h"
#include "antdtd/processes/process_runner.h"
#include "antdtd/processes/process_store.h"
#include "antdtd/processes/supervision.h"
#include "antdtd/processes/throttle.h"
#include "antdtd/users/admin_desk.h"
#include "antdtd/users/users.h"
#include "core/loop.h"
#include "core/os/runtime_dir.h"
#include "core/wire/admin_messages.h"

namespace antdt::antdtd {

struct AgentOptions {
  bool is_private = false;  // the agent keeps a job daemon, and ends with its job
  std::string host;
  std::string address;  // address at which this host's workers can be reached
  Capacity capacity;
  Duration idle_exit{};       // private: the agent ends if it is given no job within this time
  Duration orphan_timeout{};  // private: orphan timeout of the job daemon
  std::string log_file;
  std::string version = {};  // of AntDT
  // CUDA_VISIBLE_DEVICES of the agent's environment: it leases no other devices.
  std::optional<std::string> visible_devices = {};
  std::optional<std::string> device_order = {};  // CUDA_DEVICE_ORDER of that environment
  std::string device_claims = DeviceClaims::kDirectory;
  // The agent's own directories, which may be in /tmp: it touches all in them once a day.
  std::vector<std::string> kept_directories = {};
};

// The parts of an agent, which main opens.
struct AgentParts {
  ProcessStore store;
  transport::Socket control;
  transport::Socket workers;
  ProcessRunner::Settings runner;
  // Makes the socket for the workers of another user and hands it over.
  UserSockets::SocketOf socket_of = nullptr;
  // users of the tcp port; over ipc there is only the agent's own user
  std::unique_ptr<Users> users = nullptr;
};

class Agent {
 public:
  // Adopts what an earlier agent left, then serves on `loop`.
  Agent(EventLoop& loop, AgentParts parts, AgentOptions options, const Accelerators& accelerators);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Whether a private agent's job is over and nothing of it is left. The agent stops the loop when
  // that happens.
  [[nodiscard]] bool finished() const { return private_job_->finished(); }
  [[nodiscard]] metrics::Families families() const;  // its metrics: agent_admins.cc
  [[nodiscard]] std::string summary() const;         // one line for people: agent_admins.cc

 private:
  void adopt();
  void apply(const supervision::Input& input);
  void run(const supervision::LaunchProcess& effect);
  void run(const supervision::SignalProcess& effect);
  void run(const supervision::ReportStarted& effect);
  void run(const supervision::MarkOrphaned& effect);
  void run(const supervision::ReportDeviceTrouble& effect);  // agent_devices.cc
  void run(const supervision::ReportExit& effect);
  void run(const supervision::RefuseStart& effect);
  void run(const supervision::ForgetProcess& effect);
  void run(const supervision::ForgetJob& effect);
  void run(const supervision::WriteToLog& effect);

  void on_daemon_message(const wire::Envelope& envelope, wire::Packet packet);
  [[nodiscard]] Result<KnownUser> user_of(const std::string& key) const;
  [[nodiscard]] Status may_use_files(const std::string& job, const std::string& key) const;
  void start_process(const wire::Envelope& envelope, wire::StartProcess& start);
  void reserve_port(const wire::Envelope& envelope, const wire::Packet& packet);
  void detach(const std::string& job);
  // Requests of administrators: agent_admins.cc
  void on_admin(const wire::Envelope& envelope, const wire::Packet& packet, const KnownUser& user);
  void list_jobs(const wire::Envelope& envelope, const wire::Packet& packet, const KnownUser& user);
  void drain_host(const wire::Envelope& envelope, const wire::Packet& packet,
                  const KnownUser& user);
  void on_relayed_reply(const wire::Envelope& envelope, wire::RelayedReply reply);

  // Accelerators and their leases: agent_devices.cc
  void look_at_devices();
  void see_devices();  // and tells what is new
  [[nodiscard]] Status claim_devices(const wire::StartProcess& start);
  void hide_devices(wire::StartProcess& start) const;
  [[nodiscard]] wire::HostDevices devices_for(const UserIdentity& user) const;
  void tell_devices();
  [[nodiscard]] bool may_be_of_a_device(const ProcessKey& key, const ExitStatus& status) const;
  void hold_end(const ProcessKey& key, const ExitStatus& status);
  void look_at_held_ends();

  // Changes nothing if it fails.
  [[nodiscard]] Status save_attach(const std::string& job, const UserIdentity& user);
  void on_attached(const std::string& job);
  [[nodiscard]] wire::AgentWelcome welcome(const std::string& job, const UserIdentity& user);

  void on_started(const ProcessKey& key, std::uint32_t pid);
  void on_ended(const ProcessKey& key, const ExitStatus& status);
  void on_report(const ProcessKey& key, const wire::Report& report);
  void send_metrics(ReportSums::Due due);
  void throttle(const ProcessKey& key, bool stop);
  void watch_throttled(const ProcessKey& key, std::uint32_t pid);

  void arm_timer();
  void on_timer();
  void heartbeat();
  void flush_soon();
  [[nodiscard]] auto attached() const {
    return [this](const std::string& job) { return daemons_->links().attached(job); };
  }

  EventLoop& loop_;
  AgentOptions options_;
  ProcessStore store_;
  std::unique_ptr<Users> users_;
  AdminDesk desk_;
  Supervision supervision_;
  ReportSums sums_;
  ProcessCounts counts_;
  const Accelerators& accelerators_;
  DeviceClaims claims_;
  KeptDirectories kept_directories_;
  ProcessProbes probes_;
  Throttles throttles_;
  std::map<ProcessKey, std::uint64_t> throttled_;  // start times in clock ticks
  std::unique_ptr<ProcessRunner> runner_;
  std::unique_ptr<UserSockets> sockets_;
  std::unique_ptr<DaemonLinks> daemons_;
  std::unique_ptr<FileServices> files_;
  std::map<std::string, JobRecord> records_;
  wire::HostDevices told_devices_;  // what the job daemons were told last, without names
  std::string told_doubt_;          // doubt_about_visible(), as logged
  // Ends of processes that wait until their devices have been looked at.
  struct HeldEnd {
    ProcessKey key;
    ExitStatus status;
    std::uint64_t looks = 0;  // how many there must have been
    MonoTime until{};
  };
  std::vector<HeldEnd> held_ends_;
  std::optional<wire::Drain> drain_;  // while the host is drained; durable in store_

  const SteadyClock real_clock_;
  std::optional<PrivateJob> private_job_;  // set by adopt()

  std::optional<TimerId> timer_;
  TimerId heartbeat_timer_;
  std::optional<TimerId> flush_timer_;
  std::optional<TimerId> look_timer_;
};

}  // namespace antdt::antdtd
