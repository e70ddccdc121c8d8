// Hosts: the links to their agents, which processes are placed where, and the requests to start and
// end processes there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/agent_messages.h"
#include "ctl/job/report.h"
#include "ctl/lifecycle/lifecycle_events.h"
#include "ctl/lifecycle/process_requests.h"

namespace antdt::jobd {

struct Shell;

class HostDesk {
 public:
  explicit HostDesk(Shell& shell) : shell_(shell) {}

  [[nodiscard]] Status dial_agents(transport::Context& context);
  void on_welcome(const std::string& endpoint, wire::AgentWelcome welcome);
  void on_drain(const std::string& endpoint, const wire::HostDrain& drain);
  // `trouble`: the run directory there is another job's, so nothing of this one may run there; "":
  // it is this job's.
  void on_run_directory(const std::string& endpoint, const std::string& trouble);
  void on_devices(const std::string& endpoint, const wire::HostDevices& devices);
  void on_device_trouble(const std::string& endpoint, const wire::DeviceTrouble& trouble);
  // What agents told last of their hosts' devices.
  void add_devices(ctl::JobReport& report) const;
  void on_lost(const std::string& endpoint, const std::string& reason);
  // Reports hosts that have been silent for a moment.
  void look_at_silence();

  void start(const ctl::lifecycle::StartWorker& o);
  void stop(const ctl::lifecycle::StopWorker& o);
  // For programs that need an address and a free port on rank 0's host: asks its agent.
  void prepare(const ctl::lifecycle::PrepareGang& o);
  void on_port(std::uint32_t master_port);
  // Repeats requests that an agent has not confirmed. Asking twice is safe.
  void repeat_requests();

 private:
  [[nodiscard]] ctl::HostState state_of(const std::string& endpoint,
                                        const wire::AgentWelcome& welcome) const;
  // Why nothing is started there; "": it may be.
  [[nodiscard]] std::string why_drained(const std::string& endpoint,
                                        const wire::AgentWelcome& welcome) const;
  void place_if_due();
  void place_workers();
  void tell_trouble(const wire::HostDevices& before, const wire::HostDevices& now);

  Shell& shell_;
  std::map<std::string, wire::AgentWelcome> hosts_;  // by endpoint
  std::map<std::string, std::string> not_ours_;      // the run directory there: why, by endpoint
  ctl::ProcessRequests requests_;
  std::map<WorkerId, std::vector<wire::EnvVar>> extra_env_;
  std::vector<ctl::PlacedWorker> waiting_for_port_;
};

}  // namespace antdt::jobd
