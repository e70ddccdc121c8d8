#include "sim/servers/ps_link.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace antdt::sim {
namespace {

namespace requests = ps::requests;

requests::Start start_of(const wire::PsRoster& roster) {
  requests::Start start;
  start.roster = roster;
  return start;
}

requests::Reply reply_of(PsReply reply) {
  return std::visit(
      [](auto&& body) -> requests::Reply {
        if constexpr (std::is_constructible_v<requests::Reply, decltype(body)>) {
          return std::move(body);
        } else {
          return requests::UnreadableReply{{ErrorKind::kCorrupt, "this is no answer to a worker"}};
        }
      },
      std::move(reply));
}

}  // namespace

PsLink::PsLink(Outside outside, Member self, Generation generation, ps::Consistency consistency,
               const wire::PsRoster& roster)
    : outside_(std::move(outside)),
      self_(self),
      generation_(generation),
      calls_(self, consistency, start_of(roster)) {
  calls_.begin(wanted_);
  perform_all();
}

void PsLink::perform_all() {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const requests::Effect effect = std::move(wanted_[i]);
    std::visit([this](const auto& e) { perform(e); }, effect);
  }
  wanted_.clear();
}

void PsLink::perform(const requests::OpenRequestLink& effect) {
  links_[effect.link] = {address_of(effect.endpoint, effect.key), outside_.new_socket()};
}

void PsLink::perform(const requests::SendRequest& effect) {
  const auto link = links_.find(effect.link);
  if (link == links_.end()) return;
  std::visit(
      [&](const auto& ask) {
        outside_.ask(link->second.address,
                     {self_, link->second.socket, generation_, effect.seq, PsAsk(ask)});
      },
      *effect.ask);
}

void PsLink::perform(const requests::LookForRoster& effect) {
  calls_.step(requests::RosterLooked{outside_.newer(effect.than)}, outside_.now(), wanted_);
}

void PsLink::hear() {
  while (!unheard_.empty()) {
    PsAnswer answer = std::move(unheard_.front());
    unheard_.pop_front();
    const auto link = std::ranges::find_if(
        links_, [&](const auto& l) { return l.second.socket == answer.socket; });
    if (link == links_.end()) continue;  // the packet belongs to another link
    calls_.step(requests::ReplyHeard{link->first, answer.seq, reply_of(std::move(answer.body))},
                outside_.now(), wanted_);
    perform_all();
  }
}

void PsLink::wait() {
  ANTDT_CHECK(calls_.requests().waits_for_any(), "nothing is under way to wait for");
  calls_.step(requests::WaitGoesOn{}, outside_.now(), wanted_);
  perform_all();
  const Duration due = std::max(Duration::zero(), calls_.requests().next_due() - outside_.now());
  outside_.later(due, [this, watch = life_.watch(), wait = ++waits_] {
    if (!watch.expired() && wait == waits_) outside_.due();
  });
}

}  // namespace antdt::sim
