// How the job daemon stands with the agents of its hosts. Pure.
//
//   attaching ──AgentWelcome──> welcome ──(it does not know this daemon any more)──> attaching
//   attaching, welcome ──(silent for too long, it refuses, or its host is gone)──> lost
//   lost ──(it says anything)──> attaching
//
// Each beat an agent that has not welcomed the daemon is asked again, and the others hear that the
// daemon lives. An agent does the same, so a host is silent only if something is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wire/envelope.h"
#include "core/wire/heartbeat.h"

namespace antdt::ctl {

class AgentContacts {
 public:
  static constexpr Duration kBeat = wire::kHeartbeatInterval;
  // How long an agent may be silent that has not welcomed this daemon.
  static constexpr Duration kConnectDeadline = std::chrono::seconds(10);
  // A host that was silent for so long may be lost.
  static constexpr Duration kSilence = std::chrono::milliseconds(2500);

  // `lost_after`: how long one may be silent that has.
  explicit AgentContacts(Duration lost_after) : lost_after_(lost_after) {}

  void add(const std::string& host, MonoTime now) { hosts_[host] = {State::kAttaching, now}; }

  // What an agent said.
  void heard(const std::string& host, MonoTime now);
  // AgentWelcome. True: its host has come, or come back.
  [[nodiscard]] bool welcomed(const std::string& host, MonoTime now);
  // Refused, about the link. True: its host is lost from now on.
  [[nodiscard]] bool refused(const std::string& host, std::optional<wire::RefusalCode> code,
                             MonoTime now);
  // All that ran there was ended by whoever lent the host. True: it is lost from now on.
  [[nodiscard]] bool gone(const std::string& host);
  // At each beat. With a time: the host is lost from now on, after so much silence.
  [[nodiscard]] std::optional<Duration> look(const std::string& host, MonoTime now);

  [[nodiscard]] bool welcome(const std::string& host) const;
  [[nodiscard]] bool all_welcome() const;
  [[nodiscard]] std::vector<std::string> silent(MonoTime now) const;

 private:
  enum class State : std::uint8_t { kAttaching, kWelcome, kLost };
  struct Host {
    State state = State::kAttaching;
    MonoTime last_heard{};
  };
  const Duration lost_after_;
  std::map<std::string, Host> hosts_;
};

}  // namespace antdt::ctl
