#include "trainer/ps_link/peer_links.h"

#include <tuple>
#include <utility>

#include "trainer/ps_link/group_links.h"

namespace antdt::ps {

PeerLinks::PeerLinks(EventLoop& loop, transport::Context& context, transport::KeyPair own,
                     Heard heard)
    : loop_(loop), context_(context), own_(std::move(own)), heard_(std::move(heard)) {}

PeerLinks::~PeerLinks() {
  for (const auto& [server, socket] : servers_) loop_.unwatch_socket(*socket);
  close_backup();
}

Status PeerLinks::open(std::uint32_t server, const std::string& endpoint, const std::string& key) {
  close(server);
  ANTDT_TRY(auto link, connect_to_server(context_, endpoint, key, own_));
  auto& socket = servers_[server] = std::make_unique<transport::Socket>(std::move(link));
  loop_.watch_socket(*socket, [this, server, from = socket.get()] {
    while (const auto packet = from->receive()) heard_.from_server(server, *packet);
  });
  return {};
}

void PeerLinks::close(std::uint32_t server) {
  const auto known = servers_.find(server);
  if (known == servers_.end()) return;
  loop_.unwatch_socket(*known->second);
  servers_.erase(known);
}

Status PeerLinks::open_backup(const std::string& endpoint, const std::string& key) {
  close_backup();
  ANTDT_TRY(backup_, connect_to_server(context_, endpoint, key, own_));
  // The handler may end the link.
  loop_.watch_socket(*backup_, [this] {
    while (backup_) {
      const auto packet = backup_->receive();
      if (!packet) return;
      heard_.from_backup(*packet);
    }
  });
  return {};
}

void PeerLinks::close_backup() {
  if (backup_) loop_.unwatch_socket(*backup_);
  backup_.reset();
}

bool PeerLinks::send(std::uint32_t server, const wire::Packet& packet) {
  const auto link = servers_.find(server);
  if (link == servers_.end()) return true;
  return link->second->send(packet) == transport::SendOutcome::kSent;
}

void PeerLinks::send_to_backup(const wire::Packet& packet) {
  if (backup_) std::ignore = backup_->send(packet);
}

}  // namespace antdt::ps
