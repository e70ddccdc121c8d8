// The messages between the job daemon and the agents. Their bodies are those of core/wire; their
// encoding is tested elsewhere.
#pragma once

#include <string>
#include <variant>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "ctl/job/job_machine.h"

namespace antdt::sim {

struct Start {
  Member member;
};
struct Stop {
  Member member;
  Duration grace{};
};
struct ExitSeen {
  Member member;
};
struct ToAgent {
  Incarnation from;
  std::variant<wire::Attach, wire::Heartbeat, wire::Detach, Start, Stop, ExitSeen,
               ctl::job::SendToWorker>
      body;
};

// This link has not attached to the job yet.
struct NotAttached {};
struct Started {
  Member member;
  std::uint32_t pid = 0;
};
struct Exited {
  Member member;
  wire::ProcessExited exit;
};
struct StartRefused {
  Member member;
  std::string reason;
};
struct ToDaemon {
  std::string host;
  Incarnation to;  // later incarnations do not receive it
  std::variant<wire::AgentWelcome, wire::Heartbeat, NotAttached, Started, Exited, StartRefused,
               ctl::job::WorkerSaid>
      body;
};

[[nodiscard]] std::string describe(const ToAgent& message);
[[nodiscard]] std::string describe(const ToDaemon& message);

}  // namespace antdt::sim
