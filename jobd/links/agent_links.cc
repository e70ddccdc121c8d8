#include "jobd/links/agent_links.h"

#include <utility>

#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {
// How many messages of one link are handled in a turn, so that no host starves another.
constexpr int kMostPackets = 256;
}  // namespace

AgentLinks::AgentLinks(EventLoop& loop, std::string job, Incarnation incarnation,
                       Duration host_lost_after, Handlers handlers)
    : loop_(loop),
      job_(std::move(job)),
      incarnation_(incarnation),
      contacts_(host_lost_after),
      handlers_(std::move(handlers)) {
  loop_.call_after(ctl::AgentContacts::kBeat, [this] { tick(); });
}

wire::Envelope AgentLinks::own_envelope() const {
  wire::Envelope envelope;
  envelope.job = job_;
  return envelope;
}

void AgentLinks::add(const std::string& endpoint, transport::Socket socket) {
  auto link = std::make_unique<Link>(Link{endpoint, std::move(socket)});
  Link& kept = *link;
  links_[endpoint] = std::move(link);
  contacts_.add(endpoint, loop_.now());
  loop_.watch_socket(kept.socket, [this, &kept] { receive(kept); });
  attach(endpoint);
}

void AgentLinks::attach(const std::string& endpoint) {
  if (detached_) return;
  send(endpoint, wire::make_packet(own_envelope(), wire::Hello{wire::kMinVersion, wire::kMaxVersion,
                                                               "antdt-jobd"}));
  send(endpoint, wire::make_packet(own_envelope(), wire::Attach{incarnation_}));
}

bool AgentLinks::send(const std::string& endpoint, const wire::Packet& packet) {
  const auto link = links_.find(endpoint);
  return link != links_.end() && link->second->socket.send(packet) == transport::SendOutcome::kSent;
}

void AgentLinks::heartbeat() {
  if (detached_) return;
  for (auto& [endpoint, link] : links_) {
    if (contacts_.welcome(endpoint))
      send(endpoint, wire::make_packet(own_envelope(), wire::Heartbeat{}));
  }
}

void AgentLinks::gone(const std::string& endpoint, const std::string& reason) {
  if (contacts_.gone(endpoint)) handlers_.on_lost(endpoint, reason);
}

void AgentLinks::detach() {
  for (auto& [endpoint, link] : links_) {
    send(endpoint, wire::make_packet(own_envelope(), wire::Detach{}));
  }
  detached_ = true;
}

std::vector<std::string> AgentLinks::endpoints() const {
  std::vector<std::string> names;
  for (const auto& [endpoint, link] : links_) names.push_back(endpoint);
  return names;
}

void AgentLinks::receive(Link& link) {
  for (int n = 0; n < kMostPackets; ++n) {
    const auto packet = link.socket.receive();
    if (!packet) return;
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    if (!hear_about_link(link.endpoint, *envelope, packet->body)) {
      handlers_.on_message(link.endpoint, *envelope, packet->body);
    }
  }
}

// False: it is about something else.
bool AgentLinks::hear_about_link(const std::string& endpoint, const wire::Envelope& envelope,
                                 std::string_view body) {
  const MonoTime now = loop_.now();
  const bool about_link = envelope.worker == WorkerId{} && envelope.attempt == Attempt{};
  if (envelope.kind == wire::Refused::kKind && about_link) {
    const auto refused = wire::decode<wire::Refused>(body);
    const auto code = refused ? std::optional(refused->code) : std::nullopt;
    if (contacts_.refused(endpoint, code, now)) {
      handlers_.on_lost(endpoint, refused ? "it refused: " + refused->reason : "it refused");
    }
    return true;
  }
  if (envelope.kind == wire::AgentWelcome::kKind) {
    const auto welcome = wire::decode<wire::AgentWelcome>(body);
    if (!welcome) contacts_.heard(endpoint, now);
    if (welcome && contacts_.welcomed(endpoint, now)) handlers_.on_welcome(endpoint, *welcome);
    return true;
  }
  contacts_.heard(endpoint, now);
  return envelope.kind == wire::Heartbeat::kKind;
}

void AgentLinks::tick() {
  if (detached_) return;
  heartbeat();
  for (const std::string& endpoint : endpoints()) {
    if (!contacts_.welcome(endpoint)) attach(endpoint);
    if (const auto silent = contacts_.look(endpoint, loop_.now())) {
      handlers_.on_lost(
          endpoint,
          fmt::format("nothing was heard from it for {:.0f} s; is antdtd running there, "
                      "does it know this job's key, and does a firewall let its port through?",
                      to_seconds(*silent)));
    }
  }
  loop_.call_after(ctl::AgentContacts::kBeat, [this] { tick(); });
}

}  // namespace antdt::jobd
