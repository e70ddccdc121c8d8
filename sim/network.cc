#include "sim/network.h"

#include <algorithm>

#include "sim/hosts/hosts.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

bool Network::reaches(const std::string& a, const std::string& b) const {
  return cuts_.empty() || !cuts_.contains({std::min(a, b), std::max(a, b)});
}

void Network::cut(const std::string& a, const std::string& b, Duration how_long) {
  const std::pair link{std::min(a, b), std::max(a, b)};
  cuts_.insert(link);
  world_.after(how_long, [this, link] { cuts_.erase(link); });
}

void Network::send(const std::string& link, const std::string& host, World::Action deliver,
                   const std::string& what) {
  Rng& rng = world_.rng();
  const Faults& f = faults_;
  const auto arrive = [&](MonoTime when, Action delivery) {
    world_.at(when, [this, link, host, what, deliver = std::move(delivery)] {
      if (!reaches(kDaemon, host)) return world_.say("{} cut: {}", link, what);
      world_.say("{} {}", link, what);
      deliver();
    });
  };
  if (f.lose > 0 && rng.chance(f.lose)) return world_.say("{} lost: {}", link, what);
  Duration delay = rng.time(microseconds(100), milliseconds(2));
  if (f.delay > 0 && rng.chance(f.delay)) delay = rng.time(milliseconds(2), seconds(3));
  MonoTime& last = last_delivery_[link];
  const bool overtakes = f.reorder > 0 && rng.chance(f.reorder);
  const MonoTime when = overtakes ? world_.now() + delay : std::max(last, world_.now() + delay);
  last = std::max(last, when);
  const bool twice = f.duplicate > 0 && rng.chance(f.duplicate);
  const Duration between = twice ? rng.time(microseconds(100), seconds(1)) : Duration{};
  arrive(when, twice ? deliver : std::move(deliver));
  if (twice) arrive(when + between, std::move(deliver));
}

// ------------------------------------------------------ between workers and servers

std::uint64_t Network::new_socket(Member of) {
  sockets_.push_back(of);
  return sockets_.size() - 1;
}

// Delivered in order. A packet that finds no room, or no receiver, is lost.
void Network::carry(const Program& from, const std::shared_ptr<Program>& to,
                    const std::string& what, Deliver deliver) {
  const auto link = [from = from.member(), to = to ? to->member() : Member{}, found = bool(to)] {
    const std::string target =
        found ? fmt::format("{}.{}", to.worker, to.attempt) : std::string("nobody");
    return fmt::format("{}.{}>{}", from.worker, from.attempt, target);
  };
  Rng& rng = world_.rng();
  const Faults& f = faults_;
  if (!to || (f.lose > 0 && rng.chance(f.lose))) {
    if (world_.tracing()) world_.say("{} lost: {}", link(), what);
    return;
  }
  Duration delay = rng.time(microseconds(20), milliseconds(1));
  if (f.delay > 0 && rng.chance(f.delay)) delay = rng.time(milliseconds(1), seconds(5));
  MonoTime& last = last_carried_[{from.member(), to->member()}];
  last = std::max(last, world_.now() + delay);
  world_.at(last, [this, link, what, here = from.host(), to, deliver = std::move(deliver)] {
    if (!to->alive()) return;
    const bool arrives = reaches(here, to->host());
    if (world_.tracing()) world_.say("{}{} {}", link(), arrives ? "" : " cut:", what);
    if (arrives) deliver(*to);
  });
}

void Network::ask(const Program& from, const std::string& address, PsPacket packet) {
  const auto to = hosts_.find([&](const Program& p) { return p.address() == address; });
  const std::string what = world_.tracing() ? sim::describe(packet) : "";
  carry(from, to, what,
        [packet = std::move(packet)](Program& server) mutable { server.asked(std::move(packet)); });
}

void Network::answer(const Program& from, PsAnswer answer) {
  const Member asker = sockets_.at(answer.socket);
  const auto to = hosts_.find([&](const Program& p) { return p.member() == asker; });
  const std::string what = world_.tracing() ? sim::describe(answer) : "";
  carry(from, to, what, [answer = std::move(answer)](Program& program) mutable {
    program.answered(std::move(answer));
  });
}

}  // namespace antdt::sim
