// An operator's link to an agent: about its host, and which jobs it has.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/admin_messages.h"

namespace antdt::launcher {

// Connects to the agent with the user's key. `host_port` may leave out the usual port. kUnreachable
// if the name has no address. `keys` is a directory like that of cluster.keys: it
// has the user's job.key, and the agent's public key in agents/.
[[nodiscard]] Result<transport::Socket> connect_to_agent(transport::Context& context,
                                                         const std::string& host_port,
                                                         const std::string& keys);

class AdminLink {
 public:
  [[nodiscard]] static Result<AdminLink> open(transport::Context& context,
                                              const std::string& host_port,
                                              const std::string& keys);

  // jobs: those of all users for an administrator, else the operator's own. The calls wait for
  // the answer; kUnreachable after `timeout`, kRefused with the reason for the refusal.
  [[nodiscard]] Result<wire::JobsReply> jobs(Duration timeout);
  [[nodiscard]] Status drain(const wire::DrainHost& order, Duration timeout);

 private:
  AdminLink(transport::Socket socket, std::string agent, std::string keys)
      : socket_(std::move(socket)), agent_(std::move(agent)), keys_(std::move(keys)) {}
  [[nodiscard]] Result<wire::Packet> ask(const wire::Packet& packet, Duration timeout);

  transport::Socket socket_;
  std::string agent_;  // as the user names it
  std::string keys_;   // the directory with those for it
};

}  // namespace antdt::launcher
