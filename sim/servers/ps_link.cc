#include "sim/servers/ps_link.h"

#include <algorithm>
#include <utility>

#include "core/wire/envelope.h"

namespace antdt::sim {
namespace {

constexpr Duration kAgain = std::chrono::seconds(2);

}  // namespace

PsLink::PsLink(Outside outside, Member self, Generation generation,
               std::vector<std::string> servers, std::vector<std::string> others,
               std::uint64_t number)
    : outside_(std::move(outside)),
      self_(self),
      generation_(generation),
      servers_(std::move(servers)),
      others_(std::move(others)),
      number_(number) {
  others_.resize(servers_.size());
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    sockets_.push_back(outside_.new_socket());
    other_sockets_.push_back(outside_.new_socket());
  }
}

PsLink::Call PsLink::ask(std::vector<std::optional<PsAsk>> asks, Done done) {
  const Call number = ++last_call_;
  if (aborted_) {
    conclude(std::move(done), {});
    return number;
  }
  look_for_servers();
  Waiting& call = calls_[number];
  call.done = std::move(done);
  for (auto& ask : asks) call.asked.push_back({std::move(ask), ++seq_, {}});
  say(call);
  outside_.later(kAgain, [this, watch = life_.watch(), number] {
    if (!watch.expired()) say_again(number);
  });
  return number;
}

void PsLink::say(const Waiting& call) {
  for (std::size_t s = 0; s < call.asked.size(); ++s) {
    const Asked& asked = call.asked[s];
    if (!asked.ask || asked.reply) continue;
    outside_.ask(servers_[s], {self_, sockets_[s], generation_, asked.seq, *asked.ask});
  }
}

void PsLink::say_again(Call number) {
  const auto call = calls_.find(number);
  if (call == calls_.end()) return;
  look_for_servers();
  say(call->second);
  ask_others();
  outside_.later(kAgain, [this, watch = life_.watch(), number] {
    if (!watch.expired()) say_again(number);
  });
}

// Who serves answers it at once.
void PsLink::ask_others() {
  for (std::size_t s = 0; s < others_.size(); ++s) {
    if (others_[s].empty()) continue;
    outside_.ask(others_[s], {self_, other_sockets_[s], generation_, 0, wire::PsPull{}});
  }
}

// Those whose processes were replaced are elsewhere.
void PsLink::look_for_servers() {
  const auto roster = outside_.newer(number_);
  if (!roster) return;
  number_ = roster->number;
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s] != roster->servers[s]) {
      const bool known = others_[s] == roster->servers[s];
      servers_[s] = roster->servers[s];
      sockets_[s] = known ? other_sockets_[s] : outside_.new_socket();
    }
    const std::string other = roster->others.empty() ? "" : roster->others[s];
    if (others_[s] == other) continue;
    others_[s] = other;
    other_sockets_[s] = outside_.new_socket();
  }
}

// The one before it is not heard any more.
void PsLink::move_to_other(std::size_t server) {
  servers_[server] = std::exchange(others_[server], {});
  sockets_[server] = other_sockets_[server];
  for (const auto& [number, call] : calls_) say(call);
}

void PsLink::answered(const PsAnswer& answer) {
  const auto other = std::ranges::find(other_sockets_, answer.socket);
  if (other != other_sockets_.end()) {
    const auto server = static_cast<std::size_t>(other - other_sockets_.begin());
    if (!others_[server].empty()) move_to_other(server);
  }
  const auto socket = std::ranges::find(sockets_, answer.socket);
  if (socket == sockets_.end()) return;  // of another link
  const auto at = static_cast<std::size_t>(socket - sockets_.begin());
  const auto call = std::ranges::find_if(calls_, [&](const auto& c) {
    const Asked& asked = c.second.asked[at];
    return asked.ask && asked.seq == answer.seq && !asked.reply;
  });
  if (call == calls_.end()) return;  // it was answered before, or is forgotten
  call->second.asked[at].reply = answer.body;
  if (const auto* refused = std::get_if<wire::Refused>(&answer.body)) {
    if (refused->code != wire::RefusalCode::kStale)
      refusal_ = fmt::format("{}: {}", refused->code, refused->reason);
    return conclude(std::move(calls_.extract(call).mapped().done), {});
  }
  const auto is_done = [](const Asked& a) { return !a.ask || a.reply; };
  if (!std::ranges::all_of(call->second.asked, is_done)) return;
  const Waiting done = std::move(calls_.extract(call).mapped());
  std::vector<PsReply> replies;
  for (const Asked& a : done.asked) replies.push_back(a.reply.value_or(wire::Done{}));
  conclude(done.done, replies);
}

void PsLink::abort() {
  aborted_ = true;
  for (auto& [number, call] : std::exchange(calls_, {})) conclude(std::move(call.done), {});
}

// Who waited goes on a little later.
void PsLink::conclude(Done done, const Answers& answers) {
  outside_.later({}, [watch = life_.watch(), done = std::move(done), answers] {
    if (!watch.expired()) done(answers);
  });
}

}  // namespace antdt::sim
