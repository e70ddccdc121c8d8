// Keeps job daemons standing by on other hosts (ctl/processes/standbys.h decides where), if the
// job's journal is where they can read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/wire/agent_messages.h"
#include "core/wire/envelope.h"
#include "ctl/processes/standbys.h"

namespace antdt::jobd {

struct Shell;

class StandbyDesk {
 public:
  explicit StandbyDesk(Shell& shell);

  // Takes the standby out of `welcome.running`, which then has the workers and servers.
  void on_welcome(const std::string& host, std::uint32_t order, wire::AgentWelcome& welcome);
  void on_lost(const std::string& host);
  // Whether the message was about a standby.
  [[nodiscard]] bool on_agent_message(const std::string& host, const wire::Envelope& envelope,
                                      std::string_view body);
  void tick();
  void job_ended();

 private:
  void feed(const ctl::standby::Input& input);
  void start(const ctl::standby::StartStandby& effect);

  Shell& shell_;
  ctl::standby::Standbys standbys_;
};

}  // namespace antdt::jobd
