// The control side: the tcp port or `agent.sock`, spoken to by job daemons and
// the launcher.
//
// A link says Hello, then Attach; from then on it speaks for its job until a
// higher incarnation attaches. Whatever comes from a link that does not speak
// for the job it names is answered Refused "unknown": a daemon whose agent was
// restarted learns so that it has to attach again.
//
// A link was authenticated when it was opened. Whether its key is still authorized is
// looked up with every message; if it is not, the link speaks for nothing, nothing more is
// sent to it, and whatever comes from it is answered Refused "user".
#pragma once

#include <functional>
#include <map>
#include <string>

#include "antdtd/agent/job_links.h"
#include "antdtd/agent/outbox.h"
#include "antdtd/users/users.h"
#include "core/transport/socket.h"
#include "core/wire/agent_messages.h"

namespace antdt::antdtd {

class DaemonLinks {
 public:
  struct Handlers {
    // Of the key that a link came with ("" over ipc): whether it may speak at all now, and
    // as whom its owner is served.
    std::function<bool(const std::string& key)> authorized;
    std::function<Result<KnownUser>(const std::string& key)> user_of;
    // The job's incarnation is as in links().find(job); an error (it could not be made
    // durable) refuses the daemon.
    std::function<Status(const std::string& job, const UserIdentity& user)> on_attach;
    std::function<wire::AgentWelcome(const std::string& job)> welcome;
    // After the welcome was sent.
    std::function<void(const std::string& job)> on_attached;
    // Anything else from the daemon that speaks for the job of the envelope.
    std::function<void(const wire::Envelope&, wire::Packet)> on_message;
    std::function<void(const wire::Envelope&, const wire::Packet&)> on_start_job;
    // AdminOrder, or JobsRequest: of a link that need not speak for any job.
    std::function<void(const wire::Envelope&, const wire::Packet&, const KnownUser&)> on_admin;
    // From links that are about the files of a run (antdtd/files/file_services.h).
    std::function<void(const wire::Envelope&, wire::Packet)> on_files;
  };
  DaemonLinks(transport::Socket socket, Handlers handlers);

  [[nodiscard]] transport::Socket& socket() { return socket_; }
  [[nodiscard]] JobLinks& links() { return links_; }
  void receive(int limit);

  // To the job's daemon; kept while it is away.
  void send(const std::string& job, wire::Packet packet);
  // The same for what is worth nothing later, or is repeated anyway.
  void send_or_drop(const std::string& job, wire::Packet packet);
  void reply(const wire::Packet& to, wire::Packet packet);
  // To packet.peer, if it is there.
  void send_to_peer(const wire::Packet& packet);
  void refuse(const wire::Packet& to, const wire::Envelope& envelope, wire::RefusalCode code,
              std::string reason);
  void heartbeat_all();
  // Cuts the links whose key is not authorized any more.
  void drop_revoked();
  void forget(const std::string& job);
  [[nodiscard]] bool flush();

 private:
  void handle(wire::Packet packet);
  void hello(const wire::Envelope& envelope, const wire::Packet& packet);
  void attach(const wire::Envelope& envelope, const wire::Packet& packet);
  [[nodiscard]] Status try_attach(const std::string& job, const wire::Attach& attach,
                                  const wire::Packet& packet, const UserIdentity& user);
  void on_admin(const wire::Envelope& envelope, const wire::Packet& packet);
  void refuse_revoked(const wire::Packet& packet, const std::string& job);

  transport::Socket socket_;
  Handlers handlers_;
  JobLinks links_;
  std::map<std::string, Outbox> daemons_;          // by job
  std::map<std::string, std::uint32_t> versions_;  // of links that said Hello, by peer
};

}  // namespace antdt::antdtd
