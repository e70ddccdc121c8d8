// The workers' side: the socket `workers.sock`, one for each user whose jobs run here.
//
// A worker is identified by its envelope (job, worker, attempt). Every message tells over which
// link its worker is reached, so after a restart of the agent the first message is enough. Hello is
// answered here, Report is decoded and handed over, and everything else is relayed unread.
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
    // A message to the job's daemon, with the frames that the worker sent.
    std::function<void(const std::string& job, wire::Packet)> on_relay;
    // Whether the job belongs to the user who alone can reach this socket.
    std::function<bool(const std::string& job)> serves;
  };
  WorkerLinks(transport::Socket socket, std::string host, const Supervision& supervision,
              Handlers handlers);

  [[nodiscard]] transport::Socket& socket() { return socket_; }
  // Handles what has arrived, at most `limit` messages, and none after kMaxBytesOfABatch, so that
  // a worker that sends large ones holds nobody up.
  void receive(int limit);
  static constexpr std::size_t kMaxBytesOfABatch = 64 * 1024 * 1024;
  // A message from the job's daemon, unread. It is kept while the worker is away.
  void deliver(const ProcessKey& key, wire::Packet packet);
  void forget(const ProcessKey& key);
  // Sends again what a slow worker could not receive. Returns whether some messages are left.
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
