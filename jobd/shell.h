// All parts of the job daemon, which refer to one another: the job, the files, the links, and the
// parts themselves. There is one per daemon. It is never moved, because its parts refer to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/loop.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "ctl/job/job_machine.h"
#include "jobd/checkpoint_desk.h"
#include "jobd/disk/disks.h"
#include "jobd/disk/event_log.h"
#include "jobd/disk/history_thread.h"
#include "jobd/effect_runner.h"
#include "jobd/host_desk.h"
#include "jobd/inbox.h"
#include "jobd/links/agent_links.h"
#include "jobd/links/keeper_link.h"
#include "jobd/monitoring/hook_desk.h"
#include "jobd/monitoring/metrics_desk.h"
#include "jobd/monitoring/tensorboard_desk.h"
#include "jobd/operator_desk.h"
#include "jobd/outbox.h"
#include "jobd/programs/own_program.h"
#include "jobd/skip_desk.h"
#include "jobd/standby/run_files.h"
#include "jobd/standby/standby_desk.h"
#include "jobd/turns.h"
#include "launcher/config/job_config.h"

namespace antdt::jobd {

struct Options {
  std::string run_dir;
  std::string socket_dir;    // where jobd.sock is bound
  std::string agent_socket;  // ipc socket of the private agent
  std::string state_dir;     // where state.db is: run_dir, unless that is on a network filesystem
  std::function<void()> before_abort = {};  // called so that the log's last lines are written
  // An earlier daemon of the job began well, so no setting of the user's is to be judged again.
  bool is_restart = false;
  std::string version = {};  // of AntDT
  // Of a job daemon that stood by: the number of its host among the job's, and what keeps its
  // directory of sockets.
  std::optional<std::uint32_t> standby = {};
  std::shared_ptr<void> socket_directory = {};
};

struct Shell {
  Shell(EventLoop& the_loop, const Clock& clock, Options the_options,
        launcher::JobConfig the_config, FileLock the_lock, shard_server::Journal journal,
        std::optional<RunFileSeal> the_seal, HistoryKeeper keeper_of_history,
        ctl::JobMachine the_machine);
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Feeds an input to the job and carries out its effects.
  void feed(const ctl::job::Input& input);
  void note(const std::string& kind, const std::string& text, const std::string& extra_json = "");
  [[nodiscard]] ctl::JobReport report() const;
  // Reports, once each, that a disk does not answer, or that it answers again.
  void look_at_disks();
  void send_now(Outgoing& out);

  EventLoop& loop;
  const Options options;
  const launcher::JobConfig config;
  const std::string config_json;
  FileLock lock;
  const std::optional<RunFileSeal> seal;  // if other hosts read files of the run from the journal
  ctl::JobMachine machine;
  Disks disks;
  EventLog events;
  HistoryThread history;
  std::unique_ptr<OwnProgram> own_program;  // if the job's solution is a program
  std::optional<AgentLinks> links;
  std::optional<KeeperLink> keeper;  // set if `links` does not lead to the private agent
  std::optional<transport::Socket> socket;
  bool ended = false;
  int exit_code = 4;

  Outbox outbox;
  Turns turns;
  SkipDesk skips;
  CheckpointDesk checkpoints;
  StandbyDesk standbys;
  HostDesk hosts;
  OperatorDesk operators;
  Inbox inbox;
  EffectRunner runner;
  MetricsDesk metrics;
  TensorboardDesk tensorboard;
  std::optional<HookDesk> hooks;  // if the job has a hook
};

}  // namespace antdt::jobd
