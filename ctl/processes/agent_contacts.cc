#include "ctl/processes/agent_contacts.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl {

// From: lost. To: attaching.
void AgentContacts::heard(const std::string& host, MonoTime now) {
  Host& it = hosts_[host];
  it.last_heard = now;
  if (it.state == State::kLost) it.state = State::kAttaching;
}

// From: any. To: welcome.
bool AgentContacts::welcomed(const std::string& host, MonoTime now) {
  Host& it = hosts_[host];
  it.last_heard = now;
  return std::exchange(it.state, State::kWelcome) != State::kWelcome;
}

// From: any. To: attaching, if the agent was restarted, and is to be asked again; lost, if it does
// not want this daemon. A refusal of something else changes nothing where the daemon is welcome.
bool AgentContacts::refused(const std::string& host, std::optional<wire::RefusalCode> code,
                            MonoTime now) {
  Host& it = hosts_[host];
  it.last_heard = now;
  if (code == wire::RefusalCode::kUnknown) {
    it.state = State::kAttaching;
    return false;
  }
  // Our key was taken out of its authorized/: the host is lost until that is mended.
  const bool revoked = code == wire::RefusalCode::kUser;
  if (it.state == State::kWelcome && !revoked) return false;
  return std::exchange(it.state, State::kLost) != State::kLost;
}

// From: attaching, welcome. To: lost.
bool AgentContacts::gone(const std::string& host) {
  const auto it = hosts_.find(host);
  return it != hosts_.end() && std::exchange(it->second.state, State::kLost) != State::kLost;
}

// From: attaching, welcome. To: lost, after too much silence: it attaches again, and its welcome
// says what runs there still.
std::optional<Duration> AgentContacts::look(const std::string& host, MonoTime now) {
  Host& it = hosts_[host];
  const Duration silent = now - it.last_heard;
  const Duration limit = it.state == State::kWelcome ? lost_after_ : kConnectDeadline;
  if (it.state == State::kLost || silent <= limit) return std::nullopt;
  it.state = State::kLost;
  return silent;
}

bool AgentContacts::welcome(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.state == State::kWelcome;
}

bool AgentContacts::all_welcome() const {
  return std::ranges::all_of(hosts_,
                             [](const auto& h) { return h.second.state == State::kWelcome; });
}

std::vector<std::string> AgentContacts::silent(MonoTime now) const {
  std::vector<std::string> names;
  for (const auto& [name, host] : hosts_) {
    if (now - host.last_heard > kSilence) names.push_back(name);
  }
  return names;
}

}  // namespace antdt::ctl
