#include "jobd/links/keeper_link.h"

#include <utility>

#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"

namespace antdt::jobd {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1);

}  // namespace

KeeperLink::KeeperLink(EventLoop& loop, const std::string& job, Incarnation incarnation,
                       transport::Socket agent)
    : loop_(loop), incarnation_(incarnation), agent_(std::move(agent)) {
  envelope_.job = job;
  loop_.watch_socket(agent_, [this] { receive(); });
  tick();
}

KeeperLink::~KeeperLink() {
  loop_.cancel(timer_);
  loop_.unwatch_socket(agent_);
}

template <class T>
void KeeperLink::say(const T& message) {
  // If the agent is away or slow, it receives the next one.
  std::ignore = agent_.send(wire::make_packet(envelope_, message));
}

void KeeperLink::heartbeat() {
  if (known_) say(wire::Heartbeat{});
}

void KeeperLink::tick() {
  timer_ = loop_.call_after(kEvery, [this] { tick(); });
  if (known_) return heartbeat();
  say(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-jobd"});
  say(wire::Attach{incarnation_});
}

void KeeperLink::receive() {
  while (const auto packet = agent_.receive()) {
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    if (envelope->kind == wire::AgentWelcome::kKind) known_ = true;
    if (envelope->kind == wire::Refused::kKind) known_ = false;
  }
}

}  // namespace antdt::jobd
