#include "jobd/links/agent_links.h"

#include <utility>

#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {
constexpr Duration kHeartbeat = std::chrono::seconds(1);
// Messages of one link handled in a turn, so that no host starves another.
constexpr int kMostPackets = 256;
}  // namespace

AgentLinks::AgentLinks(EventLoop& loop, std::string job, Incarnation incarnation,
                       Duration connect_deadline, Duration host_lost_after, Handlers handlers)
    : loop_(loop),
      job_(std::move(job)),
      incarnation_(incarnation),
      connect_deadline_(connect_deadline),
      host_lost_after_(host_lost_after),
      handlers_(std::move(handlers)) {
  loop_.call_after(kHeartbeat, [this] { tick(); });
}

wire::Envelope AgentLinks::own_envelope() const {
  wire::Envelope envelope;
  envelope.job = job_;
  return envelope;
}

void AgentLinks::add(const std::string& endpoint, transport::Socket socket) {
  auto link = std::make_unique<Link>(
      Link{endpoint, std::move(socket), false, false, loop_.now(), loop_.now()});
  Link& kept = *link;
  links_[endpoint] = std::move(link);
  loop_.watch_socket(kept.socket, [this, &kept] { receive(kept); });
  send(endpoint, wire::make_packet(own_envelope(), wire::Hello{wire::kMinVersion, wire::kMaxVersion,
                                                               "antdt-jobd"}));
  send(endpoint, wire::make_packet(own_envelope(), wire::Attach{incarnation_}));
}

bool AgentLinks::send(const std::string& endpoint, const wire::Packet& packet) {
  const auto link = links_.find(endpoint);
  return link != links_.end() && link->second->socket.send(packet) == transport::SendOutcome::kSent;
}

void AgentLinks::heartbeat() {
  for (auto& [endpoint, link] : links_) {
    if (link->welcome) send(endpoint, wire::make_packet(own_envelope(), wire::Heartbeat{}));
  }
}

void AgentLinks::detach() {
  for (auto& [endpoint, link] : links_) {
    send(endpoint, wire::make_packet(own_envelope(), wire::Detach{}));
  }
}

std::vector<std::string> AgentLinks::endpoints() const {
  std::vector<std::string> names;
  for (const auto& [endpoint, link] : links_) names.push_back(endpoint);
  return names;
}

std::vector<std::string> AgentLinks::silent(Duration limit) const {
  std::vector<std::string> names;
  for (const auto& [endpoint, link] : links_) {
    if (loop_.now() - link->last_heard > limit) names.push_back(endpoint);
  }
  return names;
}

bool AgentLinks::all_welcome() const {
  for (const auto& [endpoint, link] : links_) {
    if (!link->welcome) return false;
  }
  return true;
}

void AgentLinks::receive(Link& link) {
  for (int n = 0; n < kMostPackets; ++n) {
    const auto packet = link.socket.receive();
    if (!packet) return;
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    link.last_heard = loop_.now();
    const bool was_lost = std::exchange(link.lost, false);
    if (envelope->kind == wire::Heartbeat::kKind) continue;
    if (envelope->kind == wire::AgentWelcome::kKind) {
      const auto welcome = wire::decode<wire::AgentWelcome>(packet->body);
      if (!welcome) continue;
      const bool first = !link.welcome;
      link.welcome = true;
      if (first) handlers_.on_welcome(link.endpoint, *welcome);
      continue;
    }
    const bool about_link = envelope->worker == WorkerId{} && envelope->attempt == Attempt{};
    if (envelope->kind == wire::Refused::kKind && about_link) {
      const auto refused = wire::decode<wire::Refused>(packet->body);
      // The agent was restarted: the next tick attaches again.
      const bool to_attach_again = refused && refused->code == wire::RefusalCode::kUnknown;
      // Our key was taken out of its authorized/: the host is lost until that is mended.
      const bool revoked = refused && refused->code == wire::RefusalCode::kUser;
      if (to_attach_again || revoked) link.welcome = false;
      if (to_attach_again || link.welcome) continue;
      link.lost = true;
      if (was_lost) continue;
      handlers_.on_lost(link.endpoint, refused ? "it refused: " + refused->reason : "it refused");
      continue;
    }
    handlers_.on_message(link.endpoint, *envelope, packet->body);
  }
}

void AgentLinks::tick() {
  const MonoTime now = loop_.now();
  heartbeat();
  for (auto& [endpoint, link] : links_) {
    if (!link->welcome) {
      send(endpoint,
           wire::make_packet(own_envelope(),
                             wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-jobd"}));
      send(endpoint, wire::make_packet(own_envelope(), wire::Attach{incarnation_}));
    }
    const Duration limit = link->welcome ? host_lost_after_ : connect_deadline_;
    if (!link->lost && now - link->last_heard > limit) {
      link->lost = true;
      link->welcome = false;  // it attaches again, and its welcome says what runs there still
      handlers_.on_lost(
          endpoint,
          fmt::format("nothing was heard from it for {:.0f} s; is antdtd running there, "
                      "does it know this job's key, and does a firewall let its port through?",
                      to_seconds(now - link->last_heard)));
    }
  }
  loop_.call_after(kHeartbeat, [this] { tick(); });
}

}  // namespace antdt::jobd
