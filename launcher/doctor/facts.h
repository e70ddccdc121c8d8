// What `antdt doctor` found out about hosts, before anybody judges it. Values without I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/device_report.h"
#include "core/wire/agent_messages.h"
#include "core/wire/inspect_messages.h"

namespace antdt::launcher {

// How an agent was reached from this host. An empty error: that step succeeded, or was not tried
// because an earlier one failed.
struct ReachFacts {
  std::vector<std::string> addresses;  // of the host's name
  std::string resolve_error;
  std::uint64_t resolve_us = 0;
  std::string connect_error;  // of a tcp connection to the agent's port
  std::string refused;        // the agent answers that it does not serve the key
  bool silent = false;        // it accepts connections and does not answer
  std::string not_told;       // why it does not answer what only doctor asks
};

struct ClockFacts {
  std::int64_t ahead_us = 0;  // of this host's clock
  std::uint64_t uncertain_us = 0;
};

// A directory that a job would use on a host.
struct DirectoryFacts {
  std::string purpose;  // "run directory"
  std::string path;
  bool journal = false;  // the journal is in it, too
  std::string not_told;  // why nothing is known of it
  wire::FileDiskTold told;
};

struct HostFacts {
  std::string name;   // as the user wrote it: "10.0.0.1:7700"
  bool here = false;  // this host, which has no agent of a cluster
  ReachFacts reach;
  std::optional<wire::AgentWelcome> welcome;
  std::optional<wire::FileHostTold> told;
  std::optional<ClockFacts> clock;
  std::vector<DirectoryFacts> directories;
  std::optional<report::HostDevices> devices = {};
};

// A file with a key, on this host.
struct KeyFacts {
  std::string path;
  bool secret = false;
  bool missing = false;
  bool other_owner = false;  // neither this user nor root
  std::uint32_t mode = 0;    // permission bits
  std::string error;         // why it cannot be read
};

// A member of the job's etcd (cluster.store), as this host sees it.
struct StoreFacts {
  std::string member;  // "10.0.0.1:2379"
  std::string error;   // why it cannot be used; empty: it can
  std::uint64_t answer_us = 0;
};

// A connection from one host to another, by their indices in Facts::hosts.
struct LinkFacts {
  std::size_t from = 0;
  std::size_t to = 0;
  std::string listen_error;   // the other end cannot listen
  std::string connect_error;  // it listens, and the connection fails
  wire::FileLinkTold told;
};

struct Facts {
  std::vector<HostFacts> hosts;
  std::vector<KeyFacts> keys;
  std::vector<LinkFacts> links;
  std::vector<StoreFacts> store;
  std::string user;   // who asks
  std::string ports;  // cluster.ports: "29400-29999"; "": any
  // Of job.toml, if there is one.
  std::optional<std::string> job_error;
  std::uint32_t copies = 0;  // checkpoint.copies; 0: no job
};

// "hostb at 10.0.0.1:7700": the host's own name, if it differs from what the user wrote.
[[nodiscard]] std::string label(const HostFacts& host);

}  // namespace antdt::launcher
