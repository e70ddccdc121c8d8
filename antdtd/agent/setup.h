// Turns the flags of antdtd into the parts of an Agent. Every check that can fail is made before
// anything runs, with a message that says how to mend it. kUsage is a mistake in the flags or keys,
// which the same start makes again: then the unit of systemd gives the agent up
// (packaging/antdtd.service.in). What a later start may find mended (an address that the host does
// not have yet, a port that is taken, a disk that fails) is of another kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "antdtd/agent/agent.h"
#include "core/loop.h"
#include "core/metrics/metrics_server.h"
#include "core/os/service_manager.h"
#include "core/transport/socket.h"

namespace antdt::antdtd {

struct AgentFlags {
  std::string listen;  // host:port; or:
  bool is_private = false;
  std::string keys;        // directory with agent.key and authorized/
  std::string socket_dir;  // "": a default in the runtime directory
  std::string state_dir;   // "": where the system keeps states
  std::string host_name;
  std::string interface;
  std::string address;
  double cpus = 0;  // 0: probe the host
  std::uint64_t memory_bytes = 0;
  bool allow_root = false;
  std::string log_file;
  double idle_exit_seconds = 60;
  double orphan_timeout_seconds = 60;
  std::string cgroup;  // root for workers' cgroups; "": the agent's own, if it may use that; "none"
  bool limit_cpus = false;                    // workers get no more CPU than they lease
  bool no_successor = false;                  // private: the shims do not start the agent again
  std::string metrics;                        // host:port where metrics are served; "": nowhere
  std::string version;                        // of AntDT
  std::string nvml = Accelerators::kLibrary;  // file or name of NVIDIA's management library
  double nvml_patience_seconds = to_seconds(Accelerators::kPatience);
  std::string device_claims = DeviceClaims::kDirectory;
};

// How long an agent waits for the first look at its devices before it serves: long enough for a
// driver that is awake, and shorter than anybody waits for an agent's answer. Those who need the
// devices wait for them (wire::HostDevices::pending).
inline constexpr Duration kFirstLook = std::chrono::seconds(1);

// Returns the flags with every default filled in. kUsage; kUnreachable: --interface has no address.
[[nodiscard]] Result<AgentFlags> complete(AgentFlags flags);

// The root of the workers' cgroups, or none, with a line in the log. An error only for --cgroup:
// kUsage if that is no cgroup, kIo if it is not there yet or takes no process now.
[[nodiscard]] Result<std::optional<CgroupRoot>> cgroups_of(const AgentFlags& flags);

// What the service manager that started the agent asks of it; taken out of the environment, so to
// be called while there is one thread. Nothing for a private agent, which belongs to its job and
// not to the unit in which somebody started that.
[[nodiscard]] NotifySettings take_settings_of_manager(const AgentFlags& flags);

struct Opened {
  AgentParts parts;
  AgentOptions options;
  std::string listening;  // end point, for people
};
// Binds the sockets, locks the state directory, and finds antdt-shim beside this program. `flags`
// must be complete.
[[nodiscard]] Result<Opened> open_agent(EventLoop& loop, transport::Context& context,
                                        const AgentFlags& flags);

// Serves the metrics of `agent`, which is there once the loop runs; null if the flags do not ask
// for it.
[[nodiscard]] Result<std::unique_ptr<metrics::MetricsServer>> open_metrics(
    EventLoop& loop, const AgentFlags& flags, const std::optional<Agent>& agent);

// For `antdtd --show-devices`: the devices that an agent here would lease, as a line of JSON
// (core/report/device_report.h). Waits for the first look at them, for `nvml_patience_seconds` at
// most.
[[nodiscard]] std::string devices_json(const AgentFlags& flags, const Accelerators& accelerators);

// Removes the directories that a private agent leaves after its job, unless they contain anything
// else.
void remove_traces(const AgentFlags& flags);

}  // namespace antdt::antdtd
