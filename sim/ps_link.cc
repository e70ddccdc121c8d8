#include "sim/ps_link.h"

#include <algorithm>
#include <utility>

namespace antdt::sim {
namespace {

constexpr Duration kAgain = std::chrono::seconds(2);

}  // namespace

PsLink::PsLink(Outside outside, Member self, Generation generation,
               std::vector<std::string> servers)
    : outside_(std::move(outside)),
      self_(self),
      generation_(generation),
      servers_(std::move(servers)) {
  for (std::size_t i = 0; i < servers_.size(); ++i) sockets_.push_back(outside_.new_socket());
}

void PsLink::ask(std::vector<std::optional<PsAsk>> asks, Done done) {
  done_ = std::move(done);
  asked_.clear();
  ++call_;
  if (aborted_) return conclude({});
  for (auto& ask : asks) asked_.push_back({std::move(ask), ++seq_, {}});
  for (std::size_t s = 0; s < asked_.size(); ++s) say(s);
  outside_.later(kAgain, [this, watch = life_.watch(), call = call_] {
    if (!watch.expired()) say_again(call);
  });
}

void PsLink::say(std::size_t server) {
  const Asked& asked = asked_[server];
  if (!asked.ask || asked.reply) return;
  outside_.ask(servers_[server], {self_, sockets_[server], generation_, asked.seq, *asked.ask});
}

void PsLink::say_again(std::uint64_t call) {
  if (call != call_ || !done_) return;
  for (std::size_t s = 0; s < asked_.size(); ++s) say(s);
  outside_.later(kAgain, [this, watch = life_.watch(), call] {
    if (!watch.expired()) say_again(call);
  });
}

void PsLink::answered(const PsAnswer& answer) {
  if (!done_) return;
  const auto at = std::ranges::find(sockets_, answer.socket) - sockets_.begin();
  if (at == std::ssize(sockets_)) return;  // of another link
  Asked& asked = asked_[static_cast<std::size_t>(at)];
  if (!asked.ask || answer.seq != asked.seq || asked.reply) return;  // of an earlier request
  asked.reply = answer.body;
  if (const auto* refused = std::get_if<wire::Refused>(&answer.body)) {
    if (refused->code != "stale") refusal_ = refused->code + ": " + refused->reason;
    return conclude({});
  }
  const bool all = std::ranges::all_of(asked_, [](const Asked& a) { return !a.ask || a.reply; });
  if (!all) return;
  std::vector<PsReply> replies;
  for (const Asked& a : asked_) replies.push_back(a.reply.value_or(wire::Done{}));
  conclude(replies);
}

void PsLink::abort() {
  aborted_ = true;
  if (done_) conclude({});
}

// Who waited goes on a little later.
void PsLink::conclude(const Answers& answers) {
  outside_.later({}, [watch = life_.watch(), done = std::exchange(done_, {}), answers] {
    if (!watch.expired()) done(answers);
  });
}

}  // namespace antdt::sim
