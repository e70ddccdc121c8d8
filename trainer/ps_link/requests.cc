#include "trainer/ps_link/requests.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "core/check.h"
#include "core/os/net.h"
#include "trainer/ps_link/group_links.h"

namespace antdt::ps {
namespace {

// Empty where there is none.
std::string at(const std::vector<std::string>& all, std::size_t index) {
  return index < all.size() ? all[index] : std::string();
}

}  // namespace

Result<std::unique_ptr<Requests>> Requests::connect(transport::Context& context, const Peers& peers,
                                                    Member self) {
  if (peers.servers.empty()) return fail(ErrorKind::kUsage, "a group without parameter servers");
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail_errno(ErrorKind::kIo, errno, "cannot make an eventfd");
  std::unique_ptr<Requests> requests(new Requests(context, peers, self, wake_fd));
  for (std::size_t s = 0; s < peers.servers.size(); ++s) {
    ANTDT_TRY(auto socket,
              connect_to_server(context, peers.servers[s], at(peers.keys, s), peers.own));
    requests->links_.push_back(std::move(socket));
  }
  for (std::uint32_t s = 0; s < requests->servers(); ++s) {
    ANTDT_RETURN_IF_ERROR(requests->replace_other(s, at(peers.others, s), at(peers.other_keys, s)));
  }
  return requests;
}

Requests::Requests(transport::Context& context, const Peers& peers, Member self, int wake_fd)
    : context_(context),
      own_(peers.own),
      endpoints_(peers.servers),
      give_up_(peers.give_up),
      again_(peers.again),
      reach_(peers.reach),
      send_delay_(peers.send_delay),
      wake_fd_(wake_fd),
      others_(peers.servers.size()),
      other_endpoints_(peers.servers.size()),
      number_(peers.number),
      newer_(peers.newer),
      heard_(peers.servers.size()) {
  envelope_.worker = self.worker;
  envelope_.attempt = self.attempt;
  envelope_.generation = peers.generation;
}

Requests::~Requests() { ::close(wake_fd_); }

void Requests::abort() {
  aborted_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

Status Requests::check_open() const {
  if (!aborted_) return {};
  return fail(ErrorKind::kAborted, "the group of parameter servers of generation {} is over",
              envelope_.generation);
}

Requests::Id Requests::say(std::uint32_t server, Id id, wire::Packet packet) {
  const MonoTime begun = SteadyClock().now();
  if (send_delay_) hold_back(send_delay_(packet.body.size()));
  // Without room it is said again, as if it had been lost.
  std::ignore = links_[server].send(packet);
  const Duration pause = patience_with(server);
  const MonoTime again = SteadyClock().now() + pause;
  under_way_.emplace(id, UnderWay{server, std::move(packet), begun, again, pause, {}});
  return id;
}

Duration Requests::patience_with(std::uint32_t server) const {
  return others_[server] == 0 ? again_ : std::min(again_, kAgainOfTwo);
}

// A slow link would hold an abort up no longer than this.
void Requests::hold_back(Duration delay) const {
  constexpr Duration kSlice = std::chrono::milliseconds(20);
  const SteadyClock clock;
  const MonoTime end = clock.now() + delay;
  while (!aborted_ && clock.now() < end) {
    std::this_thread::sleep_until(std::min(end, clock.now() + kSlice));
  }
}

bool Requests::receive() {
  const auto answers = [&] {
    return std::ranges::count_if(under_way_, [](const auto& r) { return !!r.second.answer; });
  };
  const auto before = answers();
  for (std::uint32_t s = 0; s < servers(); ++s) {
    if (others_[s] != 0) {
      // First the backup: once it answers, the other one is not heard any more.
      if (auto packet = links_[others_[s]].receive()) {
        move_to_other(s);
        take_in(s, std::move(*packet));
      }
    }
    while (auto packet = links_[s].receive()) take_in(s, std::move(*packet));
  }
  return answers() > before;
}

void Requests::take_in(std::uint32_t server, wire::Packet packet) {
  const auto envelope = wire::open_envelope(packet);
  if (!envelope) return;
  heard_[server] = true;
  const auto found = under_way_.find(envelope->seq);
  // Not there: said twice and answered twice, or forgotten.
  if (found == under_way_.end() || found->second.answer) return;
  found->second.answer = std::move(packet);
  found->second.packet = {};
  const Duration took = SteadyClock().now() - found->second.begun;
  hop_ = std::min(hop_.value_or(took), took);
}

// For no rows: it is small, whoever serves answers it at once, and nobody waits for it.
void Requests::ask_other(std::uint32_t server) {
  if (others_[server] == 0) return;
  wire::Envelope nobody = envelope_;
  nobody.seq = 0;
  std::ignore = links_[others_[server]].send(wire::make_packet(nobody, wire::PsPull{}));
}

void Requests::move_to_other(std::uint32_t server) {
  links_[server] = std::move(links_[others_[server]]);
  drop_other_link(server);
  endpoints_[server] = std::exchange(other_endpoints_[server], {});
  say_again_now(server);
}

void Requests::drop_other_link(std::uint32_t server) {
  const std::size_t from = std::exchange(others_[server], 0);
  links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(from));
  for (std::size_t& other : others_) other -= other > from ? 1 : 0;
}

void Requests::say_again_now(std::uint32_t server) {
  const MonoTime now = SteadyClock().now();
  for (auto& [id, request] : under_way_) {
    if (request.server == server) request.again = now;
  }
}

// ------------------------------------------------- servers that were replaced

Status Requests::look_for_servers() {
  const auto roster = newer_ ? newer_(number_) : std::nullopt;
  if (!roster || roster->servers.size() != servers()) return {};
  number_ = roster->number;
  for (std::uint32_t s = 0; s < servers(); ++s) {
    ANTDT_RETURN_IF_ERROR(replace_server(s, roster->servers[s], at(roster->keys, s)));
    ANTDT_RETURN_IF_ERROR(replace_other(s, at(roster->others, s), at(roster->other_keys, s)));
  }
  return {};
}

Status Requests::replace_server(std::uint32_t server, const std::string& endpoint,
                                const std::string& key) {
  if (endpoints_[server] == endpoint) return {};
  if (others_[server] != 0 && other_endpoints_[server] == endpoint) {
    move_to_other(server);
    return {};
  }
  ANTDT_TRY(links_[server], connect_to_server(context_, endpoint, key, own_));
  endpoints_[server] = endpoint;
  heard_[server] = false;
  say_again_now(server);
  return {};
}

Status Requests::replace_other(std::uint32_t server, const std::string& endpoint,
                               const std::string& key) {
  if (other_endpoints_[server] == endpoint) return {};
  if (others_[server] != 0) drop_other_link(server);
  other_endpoints_[server].clear();
  if (endpoint.empty()) return {};
  ANTDT_TRY(auto link, connect_to_server(context_, endpoint, key, own_));
  others_[server] = links_.size();
  links_.push_back(std::move(link));
  other_endpoints_[server] = endpoint;
  const MonoTime now = SteadyClock().now();
  for (auto& [id, request] : under_way_) {
    if (request.server != server) continue;
    request.pause = std::min(request.pause, patience_with(server));
    request.again = std::min(request.again, now + request.pause);
  }
  return {};
}

// ------------------------------------------------------------------- waiting

Status Requests::wait() {
  const auto waits = [](const auto& r) { return !r.second.answer; };
  ANTDT_CHECK(std::ranges::any_of(under_way_, waits), "nothing is under way to wait for");
  while (true) {
    ANTDT_RETURN_IF_ERROR(check_open());
    if (receive()) return {};
    ANTDT_RETURN_IF_ERROR(look_for_servers());
    ANTDT_RETURN_IF_ERROR(say_again());
    std::ignore =
        transport::Socket::wait_readable(links_, next_due() - SteadyClock().now(), wake_fd_);
  }
}

MonoTime Requests::given_up_at(const UnderWay& request) const {
  return give_up_ > Duration::zero() ? request.begun + give_up_ : MonoTime::max();
}

MonoTime Requests::next_due() const {
  MonoTime next = MonoTime::max();
  for (const auto& [id, request] : under_way_) {
    if (!request.answer) next = std::min({next, request.again, given_up_at(request)});
  }
  return next;
}

Status Requests::say_again() {
  const MonoTime now = SteadyClock().now();
  for (auto& [id, request] : under_way_) {
    if (request.answer) continue;
    transport::Socket& link = links_[request.server];
    if (now >= given_up_at(request)) {
      return fail(ErrorKind::kUnreachable,
                  "parameter server s{} at {} has not answered for {} s: is it running?",
                  request.server, link.endpoint(), to_seconds(give_up_));
    }
    if (now < request.again) continue;
    ANTDT_RETURN_IF_ERROR(check_reach(request.server, now - request.begun));
    std::ignore = link.send(request.packet);
    ask_other(request.server);
    request.pause = std::min(again_, request.pause * 2);
    request.again = now + request.pause;
  }
  return {};
}

// One that restores its slices answers nothing for long, but takes connections.
Status Requests::check_reach(std::uint32_t server, Duration waited) const {
  const std::string address = tcp_address(endpoints_[server]);
  if (address.empty() || heard_[server] || waited < reach_) return {};
  const Status connected = try_to_connect(address, std::chrono::seconds(2));
  if (connected) return {};
  return fail(ErrorKind::kUnreachable,
              "cannot reach parameter server s{} from here: {}; do the hosts reach each other on "
              "[cluster] interface, and does a firewall let [cluster] ports through?",
              server, connected.error().message);
}

bool Requests::answered(Id id) const {
  const auto found = under_way_.find(id);
  return found != under_way_.end() && found->second.answer;
}

Result<wire::Packet> Requests::take_packet(Id id) {
  ANTDT_CHECK(answered(id), "request {} is not answered", id);
  wire::Packet packet = std::move(*under_way_.at(id).answer);
  under_way_.erase(id);
  ANTDT_TRY(const auto envelope, wire::open_envelope(packet));
  if (envelope.kind != wire::Refused::kKind) return packet;
  ANTDT_TRY(const auto refused, wire::decode<wire::Refused>(packet.body));
  // A peer that says so knows that the group is over, whatever else was heard.
  const bool stale = refused.code == wire::RefusalCode::kStale;
  return fail(stale ? ErrorKind::kAborted : ErrorKind::kRefused, "{}", refused.reason);
}

}  // namespace antdt::ps
