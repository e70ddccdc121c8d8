// The workers' side: the socket `workers.sock`, one for each user whose jobs run here.
//
// A worker is known by its envelope (job, worker, attempt); whatever it says
// tells by which link it is reached, so that after a restart of the agent the
// first message is enough. Hello is answered here, Report is handed over read,
// everything else unread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "antdtd/agent/outbox.h"
#include "antdtd/processes/supervision.h"
#include "core/transport/socket.h"

namespace antdt::antdtd {

class WorkerLinks {
 public:
  struct Handlers {
    std::function<void(const ProcessKey&, const wire::Report&)> on_report;
    // To the job's daemon; the packet's frames are as the worker sent them.
    std::function<void(const std::string& job, wire::Packet)> on_relay;
    // Whether the job is of the user who alone can reach this socket.
    std::function<bool(const std::string& job)> serves;
  };
  WorkerLinks(transport::Socket socket, std::string host, const Supervision& supervision,
              Handlers handlers);

  [[nodiscard]] transport::Socket& socket() { return socket_; }
  // Handles what has arrived, at most `limit` messages.
  void receive(int limit);
  // From the job's daemon, unread. Kept while the worker is not there.
  void deliver(const ProcessKey& key, wire::Packet packet);
  void forget(const ProcessKey& key);
  // Sends again what a slow worker could not take. Whether some is left.
  [[nodiscard]] bool flush();

 private:
  void handle(wire::Packet packet);
  void welcome(const wire::Envelope& envelope, const wire::Packet& packet,
               const wire::StartProcess& start);
  void refuse(const wire::Envelope& envelope, const wire::Packet& packet, wire::RefusalCode code,
              std::string reason);

  transport::Socket socket_;
  std::string host_;
  const Supervision& supervision_;
  Handlers handlers_;
  std::map<ProcessKey, Outbox> workers_;
};

}  // namespace antdt::antdtd
