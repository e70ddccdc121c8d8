// What goes between the job daemon and the agents. The bodies are those of
// core/wire; how they become bytes is tested elsewhere.
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

// This link does not speak for the job: attach first.
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
  Incarnation to;  // a later one hears nothing of it
  std::variant<wire::AgentWelcome, wire::Heartbeat, NotAttached, Started, Exited, StartRefused,
               ctl::job::WorkerSaid>
      body;
};

[[nodiscard]] std::string describe(const ToAgent& message);
[[nodiscard]] std::string describe(const ToDaemon& message);

}  // namespace antdt::sim
