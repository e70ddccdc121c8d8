#include "trainer/ps/calls/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/check.h"

namespace antdt::ps {
namespace {

// Empty if there is no such entry.
std::string at(const std::vector<std::string>& all, std::size_t index) {
  return index < all.size() ? all[index] : std::string();
}

}  // namespace

Requests::Requests(requests::Start start)
    : start_(std::move(start)),
      servers_(start_.roster.servers.size()),
      number_(start_.roster.number) {}

void Requests::begin(requests::Effects& out) {
  const wire::PsRoster& roster = start_.roster;
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    Server& server = servers_[s];
    server.at = {roster.servers[s], at(roster.keys, s)};
    server.link = open_link(server.at, out);
    server.other_at = {at(roster.others, s), at(roster.other_keys, s)};
    if (!server.other_at.endpoint.empty()) server.other = open_link(server.other_at, out);
  }
}

void Requests::step(requests::Input input, MonoTime now, requests::Effects& out) {
  std::visit([&](auto& i) { on(i, now, out); }, input);
  check_invariants();
}

void Requests::check_invariants() const {
  for (const Server& server : servers_) {
    ANTDT_CHECK(server.link != 0 && (server.other != 0) == !server.other_at.endpoint.empty(),
                "a server at {} without a link, or a backup at '{}' without one",
                server.at.endpoint, server.other_at.endpoint);
  }
}

// ------------------------------------------------------------------- what is said

Requests::Id Requests::say(std::uint32_t server, requests::Ask ask, MonoTime now,
                           requests::Effects& out) {
  const Duration pause = patience_with(servers_[server]);
  auto shared = std::make_shared<const requests::Ask>(std::move(ask));
  out.emplace_back(requests::SendRequest{servers_[server].link, ++seq_, shared});
  UnderWay request;
  request.server = server;
  request.ask = std::move(shared);
  request.begun = now;
  request.again = now + pause;
  request.pause = pause;
  request.sent = seq_;
  return under_way_.emplace(seq_, std::move(request)).first->first;
}

Duration Requests::patience_with(const Server& server) const {
  return server.other == 0 ? start_.again : std::min(start_.again, kAgainOfTwo);
}

void Requests::say_again_now(std::uint32_t server, MonoTime now) {
  for (auto& [id, request] : under_way_) {
    if (request.server != server) continue;
    request.again = now;
    request.missing = true;
  }
}

void Requests::on(const requests::WaitGoesOn&, MonoTime, requests::Effects& out) {
  out.emplace_back(requests::LookForRoster{number_});
}

// Asks for no rows: a small request, which a serving process answers at once, and nobody waits for.
// The answer to one with a number says that what was sent before it is not on its way any more.
void Requests::ask_for_nothing(requests::LinkId link, Id id, requests::Effects& out) {
  out.emplace_back(
      requests::SendRequest{link, id, std::make_shared<const requests::Ask>(wire::PsPull{})});
}

// From: said, if it is due. To: said again, if it is missing at the server; else the server is
// asked for nothing behind it. The backup is asked for nothing at the same time.
void Requests::say_what_is_due(MonoTime now, requests::Effects& out) {
  std::set<std::uint32_t> asked, backups_asked;
  for (auto& [id, request] : under_way_) {
    if (request.answer) continue;
    Server& server = servers_[request.server];
    if (now >= given_up_at(request)) {
      failure_ = Error{ErrorKind::kUnreachable,
                       fmt::format("parameter server s{} at {} has not answered for {} s: is it "
                                   "running?",
                                   request.server, server.at.endpoint, to_seconds(start_.give_up))};
      return;
    }
    if (now < request.again) continue;
    // A server that restores its slices does not answer for long, but accepts connections. One that
    // was named only now, in place of another, has as long as any other from then on.
    if (!server.heard && now - std::max(request.begun, server.since) >= start_.reach) {
      out.emplace_back(requests::CheckReach{request.server, server.at.endpoint});
    }
    if (std::exchange(request.missing, false)) {
      out.emplace_back(requests::SendRequest{server.link, id, request.ask});
      request.sent = ++seq_;
      request.asked = false;
    } else {
      if (asked.insert(request.server).second) ask_for_nothing(server.link, ++seq_, out);
      request.asked = true;
    }
    if (server.other != 0 && backups_asked.insert(request.server).second) {
      ask_for_nothing(server.other, 0, out);
    }
    request.pause = std::min(start_.again, request.pause * 2);
    request.again = now + request.pause;
  }
}

// A server takes the requests of a link in their order. So one that was sent before this one, and
// is not answered, was lost, or waits at the server for something else.
void Requests::note_order(std::uint32_t server, Id answered, MonoTime now) {
  for (auto& [id, request] : under_way_) {
    if (request.server != server || request.answer || request.sent >= answered) continue;
    request.missing = true;
    if (std::exchange(request.asked, false)) request.again = now;
  }
}

void Requests::on(const requests::ReachFailed& input, MonoTime, requests::Effects&) {
  if (failure_) return;
  failure_ = Error{
      ErrorKind::kUnreachable,
      fmt::format("cannot reach parameter server s{} from here: {}; do the hosts reach each other "
                  "on [cluster] interface, and does a firewall let [cluster] ports through?",
                  input.server, input.why)};
}

MonoTime Requests::given_up_at(const UnderWay& request) const {
  return start_.give_up > Duration::zero() ? request.begun + start_.give_up : MonoTime::max();
}

MonoTime Requests::next_due() const {
  MonoTime next = MonoTime::max();
  for (const auto& [id, request] : under_way_) {
    if (!request.answer) next = std::min({next, request.again, given_up_at(request)});
  }
  return next;
}

// ------------------------------------------------------------------ what is heard

// From: said. To: answered. A repeated request may be answered twice, and a forgotten request may
// be answered, too.
void Requests::on(requests::ReplyHeard& input, MonoTime now, requests::Effects& out) {
  auto server = std::ranges::find(servers_, input.link, &Server::link);
  if (server == servers_.end()) {
    server = std::ranges::find(servers_, input.link, &Server::other);
    if (input.link == 0 || server == servers_.end()) return;
    move_to_other(static_cast<std::uint32_t>(server - servers_.begin()), now, out);
  }
  server->heard = true;
  note_order(static_cast<std::uint32_t>(server - servers_.begin()), input.seq, now);
  const auto found = under_way_.find(input.seq);
  if (found == under_way_.end() || found->second.answer) return;
  UnderWay& request = found->second;
  request.answer = std::move(input.reply);
  request.ask.reset();
  ++answers_;
  hop_ = std::min(hop_.value_or(now - request.begun), now - request.begun);
}

bool Requests::answered(Id id) const {
  const auto found = under_way_.find(id);
  return found != under_way_.end() && found->second.answer;
}

bool Requests::waits_for_any() const {
  return std::ranges::any_of(under_way_, [](const auto& r) { return !r.second.answer; });
}

Result<requests::Reply> Requests::take_reply(Id id) {
  ANTDT_CHECK(answered(id), "request {} is not answered", id);
  requests::Reply reply = std::move(*under_way_.at(id).answer);
  under_way_.erase(id);
  // kCorrupt is what a server finds of the checkpoint.
  if (const auto* unreadable = std::get_if<requests::UnreadableReply>(&reply)) {
    return fail(ErrorKind::kRefused, "{}", unreadable->error.message);
  }
  const auto* refused = std::get_if<wire::Refused>(&reply);
  if (refused == nullptr) return reply;
  // A server that reports this knows that the group is over, whatever else was received.
  const ErrorKind kind = refused->code == wire::RefusalCode::kStale     ? ErrorKind::kAborted
                         : refused->code == wire::RefusalCode::kIo      ? ErrorKind::kPeerIo
                         : refused->code == wire::RefusalCode::kCorrupt ? ErrorKind::kCorrupt
                                                                        : ErrorKind::kRefused;
  return fail(kind, "{}", refused->reason);
}

// ------------------------------------------------------------------ where servers are

std::vector<requests::LinkId> Requests::links() const {
  std::vector<requests::LinkId> links;
  for (const Server& server : servers_) {
    if (server.other != 0) links.push_back(server.other);
    links.push_back(server.link);
  }
  return links;
}

requests::LinkId Requests::open_link(const Address& at, requests::Effects& out) {
  out.emplace_back(requests::OpenRequestLink{++last_link_, at.endpoint, at.key});
  return last_link_;
}

// From now on the backup is the server.
void Requests::move_to_other(std::uint32_t index, MonoTime now, requests::Effects& out) {
  Server& server = servers_[index];
  out.emplace_back(requests::CloseRequestLink{server.link});
  server.link = std::exchange(server.other, 0);
  server.at = std::exchange(server.other_at, {});
  server.since = now;
  server.heard = false;
  say_again_now(index, now);
}

void Requests::on(const requests::RosterLooked& input, MonoTime now, requests::Effects& out) {
  if (input.newer && input.newer->servers.size() == servers_.size()) {
    const wire::PsRoster& roster = *input.newer;
    number_ = roster.number;
    for (std::uint32_t s = 0; s < servers_.size(); ++s) {
      replace_server(s, {roster.servers[s], at(roster.keys, s)}, now, out);
      replace_other(s, {at(roster.others, s), at(roster.other_keys, s)}, now, out);
    }
  }
  say_what_is_due(now, out);
}

void Requests::replace_server(std::uint32_t index, Address at, MonoTime now,
                              requests::Effects& out) {
  Server& server = servers_[index];
  if (server.at == at) return;
  if (server.other != 0 && server.other_at == at) return move_to_other(index, now, out);
  out.emplace_back(requests::CloseRequestLink{server.link});
  server.link = open_link(at, out);
  server.at = std::move(at);
  server.since = now;
  server.heard = false;
  say_again_now(index, now);
}

void Requests::replace_other(std::uint32_t index, Address at, MonoTime now,
                             requests::Effects& out) {
  Server& server = servers_[index];
  if (server.other_at == at) return;
  if (server.other != 0) out.emplace_back(requests::CloseRequestLink{server.other});
  server.other = 0;
  server.other_at = std::move(at);
  if (server.other_at.endpoint.empty()) return;
  server.other = open_link(server.other_at, out);
  for (auto& [id, request] : under_way_) {
    if (request.server != index) continue;
    request.pause = std::min(request.pause, patience_with(server));
    request.again = std::min(request.again, now + request.pause);
  }
}

}  // namespace antdt::ps
