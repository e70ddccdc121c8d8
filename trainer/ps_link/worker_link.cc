#include "trainer/ps_link/worker_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/os/net.h"
#include "core/wire/dispatch.h"
#include "trainer/ps_link/group_links.h"

namespace antdt::ps {
namespace {

requests::Start start_of(const Peers& peers) {
  requests::Start start;
  start.roster.servers = peers.servers;
  start.roster.keys = peers.keys;
  start.roster.others = peers.others;
  start.roster.other_keys = peers.other_keys;
  start.roster.number = peers.number;
  start.give_up = peers.give_up;
  start.again = peers.again;
  start.reach = peers.reach;
  return start;
}

template <class... M>
requests::Reply read_reply(const std::string& kind, const wire::Packet& packet) {
  requests::Reply reply = requests::UnreadableReply{
      {ErrorKind::kCorrupt, fmt::format("a parameter server answered '{}', which is no answer to a "
                                        "worker",
                                        kind)}};
  std::ignore = wire::dispatch<M...>(kind, packet.body, [&](auto message) {
    if (message) {
      reply = std::move(*message);
    } else {
      reply = requests::UnreadableReply{message.error()};
    }
  });
  return reply;
}

}  // namespace

Result<std::unique_ptr<WorkerLink>> WorkerLink::connect(transport::Context& context, Peers peers,
                                                        Member self) {
  if (peers.servers.empty()) return fail(ErrorKind::kUsage, "a group without parameter servers");
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail_errno(ErrorKind::kIo, errno, "cannot make an eventfd");
  std::unique_ptr<WorkerLink> link(new WorkerLink(context, std::move(peers), self, wake_fd));
  link->calls_.begin(link->wanted_);
  link->perform_all();
  if (link->failure_) return tl::unexpected<Error>(*link->failure_);
  return link;
}

WorkerLink::WorkerLink(transport::Context& context, Peers peers, Member self, int wake_fd)
    : context_(context),
      peers_(std::move(peers)),
      wake_fd_(wake_fd),
      calls_(self, peers_.consistency, start_of(peers_)) {
  envelope_.worker = self.worker;
  envelope_.attempt = self.attempt;
  envelope_.generation = peers_.generation;
}

WorkerLink::~WorkerLink() { ::close(wake_fd_); }

void WorkerLink::abort() {
  aborted_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

Status WorkerLink::check_open() const {
  if (aborted_) {
    return fail(ErrorKind::kAborted, "the group of parameter servers of generation {} is over",
                envelope_.generation);
  }
  if (failure_) return tl::unexpected<Error>(*failure_);
  if (calls_.failure()) return tl::unexpected<Error>(*calls_.failure());
  return {};
}

// ---------------------------------------------------------------- what is wanted

void WorkerLink::feed(requests::Input input) {
  calls_.step(std::move(input), clock_.now(), wanted_);
  perform_all();
}

// Effects that an effect leads to are put behind the others of its step.
void WorkerLink::perform_all() {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const requests::Effect effect = std::move(wanted_[i]);
    std::visit([this](const auto& e) { perform(e); }, effect);
  }
  wanted_.clear();
}

void WorkerLink::perform(const requests::OpenRequestLink& effect) {
  auto socket = connect_to_server(context_, effect.endpoint, effect.key, peers_.own);
  if (!socket) {
    failure_ = socket.error();
    return;
  }
  links_.push_back(effect.link);
  sockets_.push_back(std::move(*socket));
}

void WorkerLink::perform(const requests::CloseRequestLink& effect) {
  const auto link = std::ranges::find(links_, effect.link);
  if (link == links_.end()) return;
  sockets_.erase(sockets_.begin() + (link - links_.begin()));
  links_.erase(link);
}

void WorkerLink::perform(const requests::SendRequest& effect) {
  const auto link = std::ranges::find(links_, effect.link);
  if (link == links_.end()) return;
  wire::Envelope envelope = envelope_;
  envelope.seq = effect.seq;
  const wire::Packet packet =
      std::visit([&](const auto& ask) { return wire::make_packet(envelope, ask); }, *effect.ask);
  if (peers_.send_delay) hold_back(peers_.send_delay(packet.body.size()));
  // If there is no room, the request is repeated, as if it had been lost.
  std::ignore = sockets_[static_cast<std::size_t>(link - links_.begin())].send(packet);
}

// An abort waits no longer than this for a slow link.
void WorkerLink::hold_back(Duration delay) const {
  constexpr Duration kSlice = std::chrono::milliseconds(20);
  const MonoTime end = clock_.now() + delay;
  while (!aborted_ && clock_.now() < end) {
    std::this_thread::sleep_until(std::min(end, clock_.now() + kSlice));
  }
}

void WorkerLink::perform(const requests::LookForRoster& effect) {
  const auto newer = peers_.newer ? peers_.newer(effect.than) : std::nullopt;
  calls_.step(requests::RosterLooked{newer}, clock_.now(), wanted_);
}

void WorkerLink::perform(const requests::CheckReach& effect) {
  const std::string address = tcp_address(effect.endpoint);
  if (address.empty()) return;
  const Status connected = try_to_connect(address, std::chrono::seconds(2));
  if (connected) return;
  calls_.step(requests::ReachFailed{effect.server, connected.error().message}, clock_.now(),
              wanted_);
}

// ------------------------------------------------------------------ what is heard

void WorkerLink::receive() {
  for (const requests::LinkId id : calls_.requests().links()) {
    while (true) {
      const auto link = std::ranges::find(links_, id);
      if (link == links_.end()) break;
      const auto packet = sockets_[static_cast<std::size_t>(link - links_.begin())].receive();
      if (!packet) break;
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope) continue;
      feed(requests::ReplyHeard{
          id, envelope->seq,
          read_reply<wire::PsOpened, wire::PsPulled, wire::PsStaged, wire::PsIdled, wire::Done,
                     wire::Refused, wire::PsDecided>(envelope->kind, *packet)});
    }
  }
}

Status WorkerLink::advance() {
  ANTDT_RETURN_IF_ERROR(check_open());
  receive();
  return check_open();
}

Status WorkerLink::wait() {
  ANTDT_CHECK(calls_.requests().waits_for_any(), "nothing is under way to wait for");
  const std::uint64_t before = calls_.requests().answers();
  while (true) {
    ANTDT_RETURN_IF_ERROR(check_open());
    receive();
    if (calls_.requests().answers() > before) return check_open();
    feed(requests::WaitGoesOn{});
    ANTDT_RETURN_IF_ERROR(check_open());
    std::ignore = transport::Socket::wait_readable(
        sockets_, calls_.requests().next_due() - clock_.now(), wake_fd_);
  }
}

// ----------------------------------------------------------------------- calls

Result<std::uint64_t> WorkerLink::await_answer() {
  perform_all();
  while (true) {
    ANTDT_RETURN_IF_ERROR(check_open());
    if (auto answer = calls_.take_answer()) return std::move(*answer);
    ANTDT_RETURN_IF_ERROR(wait());
  }
}

Result<std::uint64_t> WorkerLink::open(const wire::PsOpen& tables) {
  ANTDT_RETURN_IF_ERROR(check_open());
  calls_.open(tables, clock_.now(), wanted_);
  return await_answer();
}

Status WorkerLink::put(const std::vector<TableGradient>& values) {
  ANTDT_RETURN_IF_ERROR(check_open());
  ANTDT_RETURN_IF_ERROR(calls_.put(values, clock_.now(), wanted_));
  ANTDT_RETURN_IF_ERROR(await_answer());
  return {};
}

Result<WorkerLink::Pulled> WorkerLink::step_pull(const std::vector<TableKeys>& keys,
                                                 const wire::PsConcluded& concluded) {
  ANTDT_RETURN_IF_ERROR(check_open());
  ANTDT_TRY(const Ticket ticket, calls_.say_step_pull(keys, concluded, clock_.now(), wanted_));
  perform_all();
  return take(ticket);
}

Status WorkerLink::say_part(const std::vector<TableGradient>& gradients,
                            const wire::PsConcluded& concluded, std::uint32_t rank) {
  ANTDT_RETURN_IF_ERROR(check_open());
  Status said = calls_.stage(gradients, concluded, rank, clock_.now(), wanted_);
  perform_all();
  return said;
}

Status WorkerLink::await_staged() {
  ANTDT_RETURN_IF_ERROR(await_answer());
  return {};
}

Result<std::uint64_t> WorkerLink::idle() {
  ANTDT_RETURN_IF_ERROR(check_open());
  calls_.idle(clock_.now(), wanted_);
  return await_answer();
}

Result<std::uint64_t> WorkerLink::settle() {
  ANTDT_RETURN_IF_ERROR(check_open());
  calls_.settle(clock_.now(), wanted_);
  return await_answer();
}

Result<WorkerLink::Ticket> WorkerLink::say_pull(const std::vector<TableKeys>& keys,
                                                std::uint64_t clock) {
  ANTDT_RETURN_IF_ERROR(check_open());
  ANTDT_TRY(const Ticket ticket, calls_.say_pull(keys, clock, clock_.now(), wanted_));
  perform_all();
  return ticket;
}

Result<WorkerLink::Pulled> WorkerLink::take(Ticket pull) {
  while (!is_here(pull)) ANTDT_RETURN_IF_ERROR(wait());
  return calls_.take(pull);
}

Result<WorkerLink::Pulled> WorkerLink::pull(const std::vector<TableKeys>& keys,
                                            std::uint64_t clock) {
  ANTDT_TRY(const Ticket ticket, say_pull(keys, clock));
  return take(ticket);
}

Status WorkerLink::say_push(const std::vector<TableGradient>& gradients, const Pulled& pulled,
                            const wire::PsCommit& commit) {
  ANTDT_RETURN_IF_ERROR(check_open());
  Status said = calls_.say_push(gradients, pulled.versions, commit, clock_.now(), wanted_);
  perform_all();
  return said;
}

Result<wire::PsDecided> WorkerLink::push(const std::vector<TableGradient>& gradients,
                                         const Pulled& pulled, const wire::PsCommit& commit) {
  const std::size_t under_way = calls_.pushes().size();
  ANTDT_CHECK(under_way == 0, "{} pushes are under way", under_way);
  ANTDT_RETURN_IF_ERROR(say_push(gradients, pulled, commit));
  while (true) {
    ANTDT_RETURN_IF_ERROR(wait());
    if (const auto decided = take_decision()) return *decided;
  }
}

}  // namespace antdt::ps
