// Carries out what supervision decides: it starts shims, signals them, learns how they end, touches
// their claim files, and adopts the shims of an earlier agent.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antdtd/devices/device_claims.h"
#include "antdtd/files/file_services.h"
#include "antdtd/processes/endings.h"
#include "antdtd/processes/environment.h"
#include "antdtd/processes/process_store.h"
#include "antdtd/processes/shim_launcher.h"
#include "antdtd/processes/supervision.h"
#include "antdtd/shim/cgroup.h"
#include "antdtd/shim/shim_files.h"
#include "core/loop.h"

namespace antdt::antdtd {

class ProcessRunner {
 public:
  struct Settings {
    std::string shim;                      // path of antdt-shim
    std::string workers_socket;            // ANTDT_SOCKET
    std::string socket_dir;                // sockets of other users' workers are in it
    std::vector<std::string> environment;  // environment of the agent
    // The command with which shims start this (private) agent again; empty: they do not.
    std::vector<std::string> successor;
    std::string agent_lock;             // lock of the state directory
    Duration agent_hung_after{};        // an agent that touches no claim for this long is ended
    std::optional<CgroupRoot> cgroups;  // the root of workers' cgroups
    bool limit_cpus = false;  // in those cgroups, limits workers to the CPUs that they lease
    // Where shims join the claims of their workers' devices (antdtd/devices/device_claims.h).
    std::string device_claims = DeviceClaims::kDirectory;
  };
  // Handlers are called from the loop, never from within a call to the runner.
  struct Handlers {
    std::function<void(const ProcessKey&, std::uint32_t pid)> on_started;
    std::function<void(const ProcessKey&, const ExitStatus&)> on_ended;
    // The user as whom the processes of a job run.
    std::function<const UserIdentity&(const std::string& job)> owner_of;
  };
  ProcessRunner(EventLoop& loop, ProcessStore& store, Settings settings, Handlers handlers);
  ~ProcessRunner();
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;

  // A worker's environment is described in antdtd/processes/environment.h; the job daemon
  // (kJobDaemon) gets the agent's own. If the start fails, it is reported as an end.
  void launch(const ProcessKey& key, StartRequest start);
  // Reports that it was not started; after kObstructed, as a process that was killed.
  void fail_start(const ProcessKey& key, const Error& why);
  void signal(const ProcessKey& key, Force force);
  // Durable when it returns: if the process does not end with code 0, its end is an orphan's.
  void mark_orphaned(const ProcessKey& key) const;
  void forget(const ProcessKey& key);
  // Signals the process of that pid if it belongs to the owner of the job; what a user's shim
  // writes is not trusted.
  [[nodiscard]] Status signal_owned(const std::string& job, pid_t pid, std::uint64_t start_time,
                                    int signal) const;
  // The path of its cgroup; "": it has none.
  [[nodiscard]] std::string cgroup_of(const ProcessKey& key) const;
  // Starts the file service of a run whose files are this user's.
  [[nodiscard]] Result<FileServices::Child> start_file_service(const std::string& run_dir,
                                                               const UserIdentity& user) const;

  // Finds the processes of an earlier agent, and watches those that live. One that was found
  // without a pid and a status is beginning, or its end is being made sure of, and reported then.
  [[nodiscard]] std::vector<supervision::ProcessFound> adopt();

 private:
  struct Live {
    pid_t shim = 0;
    std::uint64_t shim_start_time = 0;
    int status_fd = -1;
    std::string status_text;
    bool started = false;  // on_started was called
  };
  [[nodiscard]] Result<Live> start_shim(const ProcessKey& key, const wire::StartProcess& start);
  [[nodiscard]] Result<LaunchedShim> launch_shim_of(const UserIdentity& owner,
                                                    const ProcessKey& key,
                                                    const wire::StartProcess& start,
                                                    const std::string& cgroup,
                                                    const PythonFiles& python) const;
  // How it ended, if an exit file says so.
  [[nodiscard]] Result<std::string> read_exit(const ProcessKey& key) const;
  [[nodiscard]] std::optional<PidFile> read_pids(const ProcessKey& key) const;
  [[nodiscard]] bool has_exit(const ProcessKey& key) const;
  [[nodiscard]] static Live live_of(const LaunchedShim& shim);
  [[nodiscard]] supervision::ProcessFound adopt_one(const ProcessStore::Stored& stored);
  // Makes its cgroup and remembers it; returns "" if there is none.
  [[nodiscard]] std::string make_cgroup(const ProcessKey& key, const wire::StartProcess& start);
  [[nodiscard]] CgroupLimits limits_of(const wire::StartProcess& start) const;
  void limit_again(const ProcessStore::Stored& stored) const;
  void look_again(const ProcessKey& key);  // looks again for the pids of a shim that just began
  void watch(const ProcessKey& key);
  void read_status(const ProcessKey& key);
  void close_status(Live& live);
  void shim_ended(const ProcessKey& key);
  void later(std::function<void()> call);
  [[nodiscard]] ExitStatus exit_of(const ProcessKey& key, const std::string& otherwise) const;
  [[nodiscard]] ExitStatus recorded_exit(const ProcessKey& key, const std::string& otherwise) const;
  // Ends what a shim could not end because it was killed itself. Returns the child that is still
  // at it; 0: none.
  [[nodiscard]] pid_t clean_up_after_shim(const ProcessKey& key) const;
  void save_exit(const ProcessKey& key, const ExitStatus& status) const;
  void claim_all();

  EventLoop& loop_;
  ProcessStore& store_;
  Settings settings_;
  Handlers handlers_;
  std::map<ProcessKey, Live> live_;
  Endings endings_;
  TimerId claim_timer_;
  // Callbacks that the loop still holds check it, because this object may have been destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace antdt::antdtd
