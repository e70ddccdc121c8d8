#include "trainer/loop/sharing/share_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/os/net.h"
#include "core/wire/codec.h"
#include "trainer/loop/sharing/udp.h"

namespace antdt::trainer {
namespace {

using worker::sharing::Answer;
using worker::sharing::Asked;
using worker::sharing::Offered;

// An ask is repeated after this time, and then after twice the time before, at most kAskSeldom. An
// answer that comes late changes nothing: the desk gives the same one again.
constexpr std::chrono::milliseconds kAskAgain(10);
constexpr std::chrono::milliseconds kAskSeldom(200);

// Each member asks on a port of its own, from a different beginning.
Result<OwnedFd> bind_one(const std::string& address, std::uint32_t rank, const PortRange& ports) {
  if (ports.any()) return bind_udp(address, 0);
  Result<OwnedFd> bound = fail(ErrorKind::kIo, "no port was tried");
  for (std::uint32_t n = 0; n < ports.count(); ++n) {
    bound = bind_udp(address, ports.at(rank, n));
    if (bound) return bound;
  }
  return fail(ErrorKind::kIo,
              "no port of {}-{} is free for the messages of shared steps: widen cluster.ports ({})",
              ports.first, ports.last, bound.error().message);
}

Error over() { return {ErrorKind::kAborted, "the generation is over"}; }

}  // namespace

ShareLink::ShareLink(worker::sharing::ShareGroup group, std::uint32_t member, ShareKeys keys,
                     ShareLinkOptions options)
    : group_(group),
      member_(member),
      keys_(std::move(keys)),
      options_(std::move(options)),
      buffer_(kMostBytes),
      desk_(group.size(), options_.rules),
      clients_(group.size()) {}

Result<std::unique_ptr<ShareLink>> ShareLink::open(const std::string& address, std::uint32_t rank,
                                                   std::uint32_t size, const GroupKey& key,
                                                   ShareLinkOptions options) {
  const auto group = worker::sharing::group_of(rank, size, options.rules);
  std::unique_ptr<ShareLink> link(new ShareLink(
      group, rank - group.begin, share_keys(key.secret, group.begin), std::move(options)));
  link->wake_ = OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!link->wake_.is_open()) return fail_errno(ErrorKind::kIo, errno, "making an eventfd");
  ANTDT_TRY(link->socket_, bind_one(address, rank, link->options_.ports));
  if (link->has_desk()) link->thread_ = std::thread([self = link.get()] { self->serve(); });
  return link;
}

ShareLink::~ShareLink() {
  abort();
  if (thread_.joinable()) thread_.join();
}

Result<std::string> ShareLink::address() const { return local_address(socket_); }

Status ShareLink::connect(const std::string& desk) {
  if (has_desk()) return {};
  ANTDT_RETURN_IF_ERROR(connect_udp(socket_, desk));
  ToDesk greeting;
  greeting.member = member_;
  greeting.greets = true;
  const auto deadline = std::chrono::steady_clock::now() + options_.connect_timeout;
  const auto answer = ask_over_the_network(greeting, deadline);
  if (answer) return {};
  if (answer.error().kind != ErrorKind::kUnreachable) return tl::unexpected(answer.error());
  return fail(ErrorKind::kUnreachable,
              "no datagram (UDP) came back from {}, where rank {} has the desk of shared steps, "
              "within {} s: allow UDP between the hosts on the ports of cluster.ports, or remove "
              "control.share_steps",
              desk, group_.begin, to_seconds(options_.connect_timeout));
}

void ShareLink::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  answered_.notify_all();
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));  // full: it is readable already
}

void ShareLink::delay(std::size_t bytes) const {
  if (!options_.send_delay) return;
  const Duration longer = options_.send_delay(bytes);
  if (longer > Duration{}) std::this_thread::sleep_for(longer);
}

// ------------------------------------------------------------------- a member

ToDesk ShareLink::message(const Offered& offer, std::uint32_t number) const {
  return {member_, offer.step, offer.records, offer.first, offer.most, number, part_};
}

void ShareLink::offer(const Offered& offer, const std::vector<wire::Piece>& part) {
  part_ = part;
  const ToDesk said = message(offer, 0);
  if (!has_desk()) return send_to_desk(said);
  send_to_members(to_desk(said));
}

Result<HandedRun> ShareLink::ask(const Asked& asked) {
  const ToDesk said = message(asked.offer, asked.number);
  ANTDT_TRY(FromDesk heard, has_desk() ? ask_here(said) : ask_over_the_network(said, std::nullopt));
  if (heard.is_sound(said)) return HandedRun{heard.answer(), std::move(heard.run)};
  return fail(ErrorKind::kCorrupt,
              "the desk of shared steps, of rank {}, answered with records {} to {} of member {}, "
              "named by {} pieces of shards, which cannot be: install the same release of AntDT on "
              "all hosts",
              group_.begin, heard.from, heard.to, heard.owner, heard.run.size());
}

// A datagram that cannot be sent now counts as lost.
void ShareLink::send_to_desk(const ToDesk& message) {
  const std::string datagram = sealed(keys_.to_desk, wire::encode(message));
  delay(datagram.size());
  static_cast<void>(send(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL));
}

Result<FromDesk> ShareLink::ask_over_the_network(const ToDesk& message,
                                                 std::optional<Time> deadline) {
  FromDesk heard;
  Duration patience = kAskAgain;
  send_to_desk(message);
  Time again = std::chrono::steady_clock::now() + patience;
  while (true) {
    std::array<pollfd, 2> ready{{{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(again - std::chrono::steady_clock::now());
    const int some = poll(ready.data(), ready.size(), std::max(0, static_cast<int>(left.count())));
    if (some < 0 && errno != EINTR) return fail_errno(ErrorKind::kIo, errno, "waiting for a desk");
    if (some > 0 && ready[1].revents != 0) return tl::unexpected(over());
    if (some > 0 && ready[0].revents != 0) {
      if (receive(heard) && heard.answers(message)) return heard;
    }
    const Time now = std::chrono::steady_clock::now();
    if (deadline && now >= *deadline) return fail(ErrorKind::kUnreachable, "no answer came");
    if (now < again) continue;
    send_to_desk(message);
    patience = std::min<Duration>(2 * patience, kAskSeldom);
    again = now + patience;
  }
}

bool ShareLink::receive(FromDesk& into) {
  const auto bytes = recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (bytes <= 0) return false;
  const std::string_view body =
      opened(keys_.from_desk, {buffer_.data(), static_cast<std::size_t>(bytes)});
  if (body.empty()) return false;
  auto heard = wire::decode<FromDesk>(body);
  if (heard) into = std::move(*heard);
  return heard.has_value();
}

Result<FromDesk> ShareLink::ask_here(const ToDesk& message) {
  {
    const std::lock_guard lock(mutex_);
    own_.reset();
  }
  send_to_members(to_desk(message));
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [&] { return aborted_ || (own_ && own_->answers(message)); });
  if (aborted_) return tl::unexpected(over());
  return std::move(*own_);
}

// ------------------------------------------------------------------- the desk

void ShareLink::serve() {
  while (true) {
    std::array<pollfd, 2> ready{{{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (ready[1].revents != 0) return;
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    const auto bytes = recvfrom(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT,
                                reinterpret_cast<sockaddr*>(&from), &size);
    if (bytes <= 0) continue;
    heard({buffer_.data(), static_cast<std::size_t>(bytes)},
          std::string(reinterpret_cast<const char*>(&from), size));
  }
}

// A message that makes no sense counts as lost.
void ShareLink::heard(std::string_view datagram, const std::string& from) {
  const std::string_view body = opened(keys_.to_desk, datagram);
  if (body.empty()) return;
  const auto message = wire::decode<ToDesk>(body);
  if (!message || message->member >= clients_.size() || message->member == member_) return;
  if (message->greets) {
    FromDesk greeting;
    greeting.member = message->member;
    greeting.greets = true;
    return send_to_members({{from, std::move(greeting)}});
  }
  if (!message->is_sound()) return;
  {
    const std::lock_guard lock(mutex_);
    clients_[message->member].address = from;
  }
  send_to_members(to_desk(*message));
}

// The members' answers; that of this process's own member is in own_.
std::vector<ShareLink::Outgoing> ShareLink::to_desk(const ToDesk& message) {
  const std::lock_guard lock(mutex_);
  Client& client = clients_[message.member];
  if (!client.step || message.step > *client.step) {
    client.step = message.step;
    client.part = message.part;
  }
  worker::sharing::Effects answers;
  const MonoTime now = std::chrono::steady_clock::now();
  if (message.number == 0) {
    desk_.step(message.offer(), now, answers);
  } else {
    desk_.step(Asked{message.offer(), message.number}, now, answers);
  }
  std::vector<Outgoing> out;
  for (const Answer& a : answers) answer(a, out);
  return out;
}

void ShareLink::answer(const Answer& answer, std::vector<Outgoing>& out) {
  FromDesk said = to_message(answer, clients_[answer.run ? answer.run->owner : 0].part);
  if (answer.member != member_) {
    out.push_back({clients_[answer.member].address, std::move(said)});
    return;
  }
  own_ = std::move(said);
  answered_.notify_all();
}

void ShareLink::send_to_members(const std::vector<Outgoing>& messages) const {
  for (const auto& [to, message] : messages) {
    const std::string datagram = sealed(keys_.from_desk, wire::encode(message));
    delay(datagram.size());
    static_cast<void>(
        sendto(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(to.data()), static_cast<socklen_t>(to.size())));
  }
}

}  // namespace antdt::trainer
