// The sockets of one server to the other servers of its group and to its backup.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"

namespace antdt::ps {

class PeerLinks {
 public:
  // Handlers of what arrives, called from the loop.
  struct Heard {
    std::function<void(std::uint32_t server, const wire::Packet&)> from_server;
    std::function<void(const wire::Packet&)> from_backup;
  };
  PeerLinks(EventLoop& loop, transport::Context& context, transport::KeyPair own, Heard heard);
  ~PeerLinks();
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  // Replaces the link to that server, if there is one. `key`: for tcp.
  [[nodiscard]] Status open(std::uint32_t server, const std::string& endpoint,
                            const std::string& key);
  [[nodiscard]] Status open_backup(const std::string& endpoint, const std::string& key);
  void close_backup();

  // False if there is no room. A message for a server without a link is lost.
  [[nodiscard]] bool send(std::uint32_t server, const wire::Packet& packet);
  // Without room, or without a backup, the message is lost.
  void send_to_backup(const wire::Packet& packet);

 private:
  void close(std::uint32_t server);

  EventLoop& loop_;
  transport::Context& context_;
  const transport::KeyPair own_;
  const Heard heard_;
  std::map<std::uint32_t, std::unique_ptr<transport::Socket>> servers_;
  std::optional<transport::Socket> backup_;
};

}  // namespace antdt::ps
