// The control side: the tcp port or `agent.sock`, to which job daemons and the launcher connect.
//
// A link sends Hello, then Attach. From then on it speaks for its job until a higher incarnation
// attaches. A message on a link that does not speak for the job it names is answered Refused
// "unknown"; by that, a daemon whose agent was restarted learns that it has to attach again.
//
// A link is authenticated when it is opened. With every message, the agent checks that its key is
// still authorized. If it is not, the link speaks for no job, nothing more is sent to it, and its
// messages are answered Refused "user".
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
    // About the key with which a link was opened ("" over ipc): whether the key is authorized now,
    // and as which user its owner is served.
    std::function<bool(const std::string& key)> authorized;
    std::function<Result<KnownUser>(const std::string& key)> user_of;
    // links().find(job) has the job's incarnation. An error (it could not be made durable) refuses
    // the daemon, and changes nothing of who speaks for the job.
    std::function<Status(const std::string& job, const UserIdentity& user)> on_attach;
    std::function<wire::AgentWelcome(const std::string& job, const UserIdentity&)> welcome;
    // Called after the welcome was sent.
    std::function<void(const std::string& job)> on_attached;
    // Any other message of the daemon that speaks for the job in the envelope.
    std::function<void(const wire::Envelope&, wire::Packet)> on_message;
    std::function<void(const wire::Envelope&, const wire::Packet&)> on_start_job;
    // RelayedRequest, DrainHost or JobsRequest, from a link that need not speak for a job.
    std::function<void(const wire::Envelope&, const wire::Packet&, const KnownUser&)> on_admin;
    // From links that concern the files of a run (antdtd/files/file_services.h).
    std::function<void(const wire::Envelope&, wire::Packet)> on_files;
  };
  DaemonLinks(transport::Socket socket, Handlers handlers);

  [[nodiscard]] transport::Socket& socket() { return socket_; }
  [[nodiscard]] const JobLinks& links() const { return links_; }
  // What an earlier agent on this state directory knew.
  void restore(const std::string& job, Incarnation incarnation, const std::string& user);
  void receive(int limit);

  // Sends to the job's daemon; kept while the daemon is away.
  void send(const std::string& job, wire::Packet packet);
  // The same for messages that are worthless later, or are repeated anyway.
  void send_or_drop(const std::string& job, wire::Packet packet);
  void reply(const wire::Packet& to, wire::Packet packet);
  // Sends to packet.peer, if it is there.
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
  void lose_link(const std::string& job);
  void on_admin(const wire::Envelope& envelope, const wire::Packet& packet);
  void refuse_revoked(const wire::Packet& packet, const std::string& job);

  transport::Socket socket_;
  Handlers handlers_;
  JobLinks links_;
  std::map<std::string, Outbox> daemons_;          // by job
  std::map<std::string, std::uint32_t> versions_;  // of links that sent Hello, by peer
};

}  // namespace antdt::antdtd
