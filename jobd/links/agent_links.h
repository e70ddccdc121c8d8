// The job daemon's links to the agents of its hosts.
//
// One socket a host. A link says Hello and Attach every second until the agent
// answers AgentWelcome, then heartbeats; what a silence means is decided in
// ctl/processes/agent_contacts.h. Every message of an agent that is not about the link itself goes
// to the handler, unread.
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
#include "ctl/processes/agent_contacts.h"

namespace antdt::jobd {

class AgentLinks {
 public:
  struct Handlers {
    std::function<void(const std::string& endpoint, const wire::AgentWelcome&)> on_welcome;
    std::function<void(const std::string& endpoint, const std::string& reason)> on_lost;
    std::function<void(const std::string& endpoint, const wire::Envelope&, std::string_view body)>
        on_message;
  };
  AgentLinks(EventLoop& loop, std::string job, Incarnation incarnation, Duration host_lost_after,
             Handlers handlers);

  // `endpoint` becomes the link's name ("10.0.0.1:7700" or "local").
  void add(const std::string& endpoint, transport::Socket socket);

  // Whether the message was accepted; false if the host is unknown or its queue is full. A message
  // that must arrive is repeated by the part that waits for the answer.
  bool send(const std::string& endpoint, const wire::Packet& packet);
  // Tells all agents that know this job that the daemon lives. The links call it each second;
  // whoever keeps the loop from turning must call it too.
  void heartbeat();
  // Nothing runs on that host any more, says whoever lent it.
  void gone(const std::string& endpoint, const std::string& reason);
  // Tells every agent that the job is over. The links say nothing of their own after that: an agent
  // that has forgotten the job would take an Attach for that of a new one.
  void detach();

  [[nodiscard]] std::vector<std::string> endpoints() const;
  [[nodiscard]] const ctl::AgentContacts& contacts() const { return contacts_; }

 private:
  struct Link {
    std::string endpoint;
    transport::Socket socket;
  };
  void receive(Link& link);
  [[nodiscard]] bool hear_about_link(const std::string& endpoint, const wire::Envelope& envelope,
                                     std::string_view body);
  void attach(const std::string& endpoint);
  void tick();
  wire::Envelope own_envelope() const;

  EventLoop& loop_;
  std::string job_;
  Incarnation incarnation_;
  ctl::AgentContacts contacts_;
  Handlers handlers_;
  std::map<std::string, std::unique_ptr<Link>> links_;
  bool detached_ = false;
};

}  // namespace antdt::jobd
