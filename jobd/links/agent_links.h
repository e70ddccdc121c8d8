// The job daemon's links to the agents of its hosts.
//
// One socket a host. A link says Hello and Attach every second until the agent
// answers AgentWelcome, then heartbeats; a host that was silent for
// `host_lost_after` is reported once, and welcomed anew when it is back. Every message of an agent
// that is not about the link itself goes to the handler, unread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/loop.h"
#include "core/transport/socket.h"
#include "core/wire/agent_messages.h"
#include "core/wire/envelope.h"

namespace antdt::jobd {

class AgentLinks {
 public:
  struct Handlers {
    std::function<void(const std::string& endpoint, const wire::AgentWelcome&)> on_welcome;
    std::function<void(const std::string& endpoint, const std::string& reason)> on_lost;
    std::function<void(const std::string& endpoint, const wire::Envelope&, std::string_view body)>
        on_message;
  };
  AgentLinks(EventLoop& loop, std::string job, Incarnation incarnation, Duration connect_deadline,
             Duration host_lost_after, Handlers handlers);

  // `endpoint` is the link's name from now on ("10.0.0.1:7700" or "local").
  void add(const std::string& endpoint, transport::Socket socket);

  // Whether it was handed over; false when the host is unknown or does not
  // read. What must arrive is sent again by whoever waits for the answer.
  bool send(const std::string& endpoint, const wire::Packet& packet);
  // Says that we live, to those that know us: each second by itself, and by whoever keeps the
  // loop from turning.
  void heartbeat();
  // Tells every agent that the job is over.
  void detach();

  [[nodiscard]] std::vector<std::string> endpoints() const;
  [[nodiscard]] bool all_welcome() const;
  // Those that were not heard of for so long.
  [[nodiscard]] std::vector<std::string> silent(Duration limit) const;

 private:
  struct Link {
    std::string endpoint;
    transport::Socket socket;
    bool welcome = false;
    bool lost = false;
    MonoTime since;
    MonoTime last_heard;
  };
  void receive(Link& link);
  void tick();
  wire::Envelope own_envelope() const;

  EventLoop& loop_;
  std::string job_;
  Incarnation incarnation_;
  Duration connect_deadline_;
  Duration host_lost_after_;
  Handlers handlers_;
  std::map<std::string, std::unique_ptr<Link>> links_;
};

}  // namespace antdt::jobd
