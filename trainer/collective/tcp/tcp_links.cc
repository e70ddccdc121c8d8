#include "trainer/collective/tcp/tcp_links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/os/net.h"
#include "trainer/collective/send_delay.h"

namespace antdt::trainer {
namespace {

std::string text_of(int error) { return std::strerror(error); }

int to_poll_ms(Duration d) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

}  // namespace

Result<std::unique_ptr<TcpLinks>> TcpLinks::listen(std::uint32_t rank, std::uint32_t size,
                                                   const CollectiveOptions& options) {
  if (rank >= size) {
    return fail(ErrorKind::kUsage, "cannot form a group: rank {} of {} members", rank, size);
  }
  std::unique_ptr<TcpLinks> links(new TcpLinks(rank, size, options));
  if (size > 1) ANTDT_RETURN_IF_ERROR(links->open(options));
  return links;
}

TcpLinks::TcpLinks(std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options)
    : rank_(rank),
      size_(size),
      encrypt_(options.encrypt),
      groups_(options.groups),
      connect_timeout_(options.connect_timeout),
      operation_timeout_(options.operation_timeout),
      send_delay_(options.send_delay),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      ledger_(std::make_shared<LinkLedger>(size)) {}

Status TcpLinks::open(const CollectiveOptions& options) {
  if (!wake_.is_open()) return fail_errno(ErrorKind::kIo, errno, "making an eventfd");
  std::string address = options.hostname;
  if (!options.interface.empty()) {
    auto found = interface_address(options.interface);
    if (!found)
      return fail(ErrorKind::kIo, "cannot listen for the group's members: {}",
                  found.error().message);
    address = *found;
  }
  ANTDT_RETURN_IF_ERROR(open_in_range(address, options.ports));
  ANTDT_TRY(address_, local_address(listener_));
  return {};
}

// Members on one host begin at different ports, so that they seldom collide.
Status TcpLinks::open_in_range(const std::string& address, PortRange ports) {
  std::string problem;
  const std::uint32_t tries = ports.any() ? 1 : ports.count();
  for (std::uint32_t n = 0; n < tries; ++n) {
    auto listening = listen_tcp(address, ports.any() ? 0 : ports.at(rank_, n));
    if (listening) {
      listener_ = std::move(*listening);
      return {};
    }
    problem = listening.error().message;  // most likely in use, so the next one is tried
  }
  if (ports.any())
    return fail(ErrorKind::kIo, "cannot listen for the group's members: {}", problem);
  return fail(
      ErrorKind::kIo,
      "no port of [cluster] ports = \"{}-{}\" is free, of which each worker takes one while "
      "its group is formed; of the last: {}",
      ports.first, ports.last, problem);
}

Status TcpLinks::connect(const std::vector<std::uint32_t>& peers,
                         std::span<const std::string> addresses, const GroupKey& key) {
  if (size_ == 1) return alive();
  if (addresses.size() != size_) {
    return die(fmt::format("{} addresses came for them", addresses.size()));
  }
  addresses_.assign(addresses.begin(), addresses.end());
  greeting_.emplace(Handshake::Self{key, rank_, size_, encrypt_}, listener_, wake_,
                    start_to_connect,
                    groups_ ? Greeting::Admits::kAllMembers : Greeting::Admits::kPeers);
  auto connected = greeting_->meet(peers, addresses_, connect_timeout_);
  if (!connected) {
    static_cast<void>(die(connected.error().message));
    if (aborted_) return alive();
    return tl::unexpected(connected.error());
  }
  if (!groups_) {
    greeting_.reset();
    listener_.close();
  }
  adopt(std::move(*connected));
  return {};
}

// Others may be ahead of this member by hours, or behind it: the time is that of an operation.
Status TcpLinks::reach(const std::vector<std::uint32_t>& peers) {
  ANTDT_RETURN_IF_ERROR(alive());
  if (!groups_) {
    return fail(ErrorKind::kUsage,
                "rank {} of {} connects no further members: its collective was made without groups "
                "(CollectiveOptions::groups)",
                rank_, size_);
  }
  std::vector<std::uint32_t> missing;
  std::ranges::copy_if(peers, std::back_inserter(missing),
                       [&](std::uint32_t peer) { return !is_connected_to(peer); });
  if (missing.empty()) return {};
  auto connected = greeting_->meet(missing, addresses_, operation_timeout_);
  if (!connected) return die(connected.error().message, connected.error().kind);
  adopt(std::move(*connected));
  return {};
}

void TcpLinks::adopt(std::map<std::uint32_t, Greeting::Met> met_by_rank) {
  for (auto& [peer, met] : met_by_rank) {
    const int on = 1;
    // A small message must not wait for the acknowledgement of the previous one.
    setsockopt(met.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    links_.emplace_back(peer, std::move(met.fd), encrypt_ ? &met.keys : nullptr);
  }
}

bool TcpLinks::is_connected_to(std::uint32_t peer) const {
  return std::ranges::any_of(links_, [&](const TcpLink& link) { return link.peer() == peer; });
}

TcpLink& TcpLinks::link_to(std::uint32_t peer) {
  const auto found = std::find_if(links_.begin(), links_.end(),
                                  [&](const TcpLink& link) { return link.peer() == peer; });
  ANTDT_CHECK(found != links_.end(), "rank {} is not connected to rank {}", rank_, peer);
  return *found;
}

Status TcpLinks::send(std::uint32_t to, std::span<const std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(alive());
  drill::LinkDelay delay;
  if (send_delay_) delay = send_delay_(to, bytes.size());
  if (delay.held > Duration{}) {
    const MonoTime began = std::chrono::steady_clock::now();
    hold_back(delay.held, aborted_);
    ledger_->waited(to, std::chrono::steady_clock::now() - began);
  }
  TcpLink& link = link_to(to);
  ledger_->sent(to, bytes.size());
  link.queue(bytes, delay.latency, delay.transfer);
  return write(link);
}

Status TcpLinks::write(TcpLink& link) {
  Status written = link.write();
  return written ? Status{} : die(std::move(written).error().message);
}

Status TcpLinks::receive(std::uint32_t from, std::span<std::byte> bytes) {
  ANTDT_RETURN_IF_ERROR(alive());
  TcpLink& link = link_to(from);
  link.expect(bytes);
  while (true) {
    auto whole = link.read();
    if (!whole) return die(whole.error().message, whole.error().kind);
    if (*whole) break;
    ANTDT_RETURN_IF_ERROR(wait(&link, from));
  }
  ledger_->received(from, bytes.size());
  return alive();
}

Status TcpLinks::flush() {
  ANTDT_RETURN_IF_ERROR(alive());
  const auto waits = [](const TcpLink& link) { return link.waits_to_write(); };
  while (true) {
    const auto first = std::ranges::find_if(links_, waits);
    if (first == links_.end()) break;
    ANTDT_RETURN_IF_ERROR(wait(nullptr, first->peer()));
  }
  return {};
}

Status TcpLinks::wait(const TcpLink* reading, std::uint32_t peer) {
  const MonoTime began = std::chrono::steady_clock::now();
  Status status = poll_once(reading);
  ledger_->waited(peer, std::chrono::steady_clock::now() - began);
  return status;
}

Status TcpLinks::poll_once(const TcpLink* reading) {
  polled_.assign(1, {wake_.get(), POLLIN, 0});
  Duration timeout = operation_timeout_;
  for (const TcpLink& link : links_) {
    const Duration late = link.held_back_for();
    if (late > Duration{}) timeout = std::min(timeout, late);
    const bool writes = link.waits_to_write() && late == Duration{};
    const int events = (&link == reading ? POLLIN : 0) | (writes ? POLLOUT : 0);
    if (events != 0) polled_.push_back({link.fd(), static_cast<short>(events), 0});
  }
  const int ready = poll(polled_.data(), polled_.size(), to_poll_ms(timeout));
  if (ready < 0 && errno != EINTR) return die("waiting: " + text_of(errno));
  if (ready == 0 && timeout == operation_timeout_) {
    return die(fmt::format("nothing came for {:.0f} s", to_seconds(operation_timeout_)));
  }
  ANTDT_RETURN_IF_ERROR(alive());
  for (TcpLink& link : links_) ANTDT_RETURN_IF_ERROR(write(link));
  return {};
}

Status TcpLinks::die(std::string cause, ErrorKind kind) {
  if (death_.empty()) {
    death_ = std::move(cause);
    death_kind_ = kind;
    close();
    if (on_death_) on_death_(Error{death_kind_, death_});
  }
  return alive();
}

void TcpLinks::close() {
  links_.clear();
  greeting_.reset();
  listener_.close();
}

std::span<double> TcpLinks::staging(std::size_t bytes) {
  const std::size_t words = (bytes + sizeof(double) - 1) / sizeof(double);
  if (staging_.size() < words) staging_.resize(words);
  return std::span(staging_).first(words);
}

Status TcpLinks::alive() {
  if (aborted_) {
    close();
    return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank_);
  }
  if (death_.empty()) return {};
  return fail(death_kind_, "the collective of rank {} of {} is broken: {}", rank_, size_, death_);
}

void TcpLinks::abort() {
  aborted_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  const std::lock_guard lock(abort_mutex_);
  if (on_abort_) on_abort_();
}

void TcpLinks::end_together(std::function<void(const Error&)> died, std::function<void()> aborted) {
  on_death_ = std::move(died);
  const std::lock_guard lock(abort_mutex_);
  on_abort_ = std::move(aborted);
  if (aborted_) on_abort_();
}

}  // namespace antdt::trainer
