// A machine with an agent. All the agent's decisions are made by the code that ships (supervision,
// the links of job daemons, the gate of workers, sums of reports), driven in virtual time. Files
// and processes outlive the agent; only files outlive a power failure of the machine.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "antdtd/agent/job_links.h"
#include "antdtd/host/report_sums.h"
#include "antdtd/processes/supervision.h"
#include "sim/hosts/process.h"
#include "sim/hosts/program.h"
#include "sim/messages.h"
#include "sim/world.h"

namespace antdt::sim {

class Host {
 public:
  struct Outside {
    std::function<void(ToDaemon)> to_daemon;
    std::function<std::shared_ptr<Program>(Host&, Member, std::uint32_t pid)> make_program;
  };
  Host(World& world, HostClock clock, std::string name, std::uint32_t slots, Outside outside);

  void crash_agent();
  void start_agent();
  void lose_power();
  // The machine starts; `clock` is the first value of its monotonic clock.
  void power_on(bool disk_is_empty, MonoTime clock);
  // The machine and its clock stand still; messages to it wait.
  void suspend();
  void wake();

  void receive(const ToAgent& message);
  void from_program(Program& from, Said message);
  void program_exited(Program& program, int code, int signal);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const HostClock& clock() const { return clock_; }
  [[nodiscard]] bool powered() const { return powered_; }
  [[nodiscard]] bool suspended() const { return suspended_; }
  [[nodiscard]] bool agent_runs() const { return agent_.has_value(); }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] std::vector<std::shared_ptr<Program>> living() const;
  // A live process for which `condition` is true, or null.
  template <class Condition>
  [[nodiscard]] std::shared_ptr<Program> find(Condition condition) const {
    for (const auto& [member, stored] : store_) {
      const auto& process = stored.process;
      if (process && process->alive() && condition(*process)) return process;
    }
    return nullptr;
  }

 private:
  // A directory of the agent's store: which process was started, and how it ended.
  struct Stored {
    antdtd::StartRequest start;
    std::uint32_t pid = 0;  // 0: the shim has not reported it yet
    bool orphaned = false;  // the agent ended it because the job's daemon was silent
    std::optional<antdtd::ExitStatus> status;
    std::shared_ptr<Program> process;
  };
  struct Agent {
    antdtd::Supervision supervision;
    antdtd::ReportSums sums;
    antdtd::JobLinks links;
    std::deque<ctl::job::WorkerSaid> kept;  // messages for a daemon that is away
  };

  void hear(const ToAgent& message);
  void apply(const antdtd::supervision::Input& event);
  void run(const antdtd::supervision::Effect& effect);
  void launch(Member member, const antdtd::StartRequest& start);
  void signal(Member member, antdtd::Force force);
  [[nodiscard]] bool tell_links(const antdtd::links::Input& input);
  void attach(Incarnation incarnation);
  void deliver(const ctl::job::SendToWorker& message);
  [[nodiscard]] bool attached() const;
  void send_or_drop(decltype(ToDaemon::body) body);
  void relay(ctl::job::WorkerSaid message);
  void send_metrics(const antdtd::ReportSums::Due& due);
  void answer(const Program& program, Told message);
  void arm();
  void heartbeat();

  World& world_;
  HostClock clock_;
  const std::string name_;
  const std::uint32_t slots_;
  Outside outside_;
  bool powered_ = true;
  bool suspended_ = false;
  Process machine_;        // ends when the machine loses its power
  Process agent_process_;  // ends with the agent
  std::map<Member, Stored> store_;
  std::optional<Incarnation> known_;  // the newest incarnation that attached; durable
  std::optional<Agent> agent_;
  std::optional<MonoTime> armed_;
  std::uint32_t pids_ = 1000;
};

}  // namespace antdt::sim
