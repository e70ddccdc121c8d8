#include "trainer/collective/gloo_links.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace antdt::trainer {
namespace {

namespace tcp = gloo::transport::tcp;

tcp::attr at_port(const tcp::attr& address, std::uint16_t port) {
  tcp::attr attr = address;
  if (attr.ai_addr.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(attr.ai_addr).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(attr.ai_addr).sin_port = htons(port);
  }
  return attr;
}

std::vector<char> to_vector(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }

std::chrono::milliseconds to_ms(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d);
}

// Gloo crashes on a name that cannot be resolved, so that is found out before.
Status check_resolves(const std::string& hostname) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(hostname.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(ErrorKind::kIo, "cannot listen for the ring's neighbours on '{}': {}", hostname,
                gai_strerror(error));
  }
  freeaddrinfo(found);
  return {};
}

}  // namespace

Result<std::unique_ptr<GlooLinks>> GlooLinks::listen(std::uint32_t rank, std::uint32_t size,
                                                     const RingOptions& options) {
  if (rank >= size) {
    return fail(ErrorKind::kUsage, "cannot form a ring: rank {} of {} members", rank, size);
  }
  std::unique_ptr<GlooLinks> links(new GlooLinks(rank, size, options));
  if (size > 1) ANTDT_RETURN_IF_ERROR(links->open(options));
  return links;
}

GlooLinks::GlooLinks(std::uint32_t rank, std::uint32_t size, const RingOptions& options)
    : rank_(rank),
      size_(size),
      operation_timeout_(options.operation_timeout),
      send_delay_(options.send_delay) {}

GlooLinks::~GlooLinks() {
  const std::lock_guard lock(mutex_);
  buffers_.clear();
}

Status GlooLinks::open(const RingOptions& options) {
  if (options.interface.empty()) ANTDT_RETURN_IF_ERROR(check_resolves(options.hostname));
  try {
    create_pairs(options);
  } catch (const std::exception& e) {
    return fail(ErrorKind::kIo, "cannot listen for the ring's neighbours on {} '{}': {}",
                options.interface.empty() ? "address" : "interface",
                options.interface.empty() ? options.hostname : options.interface, e.what());
  }
  return {};
}

// Throws what Gloo throws, or why there is no port.
void GlooLinks::create_pairs(const RingOptions& options) {
  tcp::attr attr;
  attr.iface = options.interface;
  attr.hostname = options.hostname;
  if (options.ports.any()) {
    left_.device = tcp::CreateDevice(attr);
    listen_on(left_, left(), options);
    right_ = left_;
    if (right() != left()) right_.context->createPair(static_cast<int>(right()));
    return;
  }
  const tcp::attr found = tcp::CreateDeviceAttr(attr);
  listen_in_range(left_, left(), found, 2 * rank_, options);
  right_ = left_;
  if (right() != left()) listen_in_range(right_, right(), found, 2 * rank_ + 1, options);
}

void GlooLinks::listen_on(Link& link, std::uint32_t neighbour, const RingOptions& options) {
  link.context = link.device->createContext(static_cast<int>(rank_), static_cast<int>(size_));
  // A pair waits five times its context's timeout for its connection.
  link.context->setTimeout(to_ms(options.connect_timeout / 5));
  link.context->createPair(static_cast<int>(neighbour));
}

// Members of one host begin at different ports, so that they seldom meet.
void GlooLinks::listen_in_range(Link& link, std::uint32_t neighbour, const tcp::attr& address,
                                std::uint32_t start, const RingOptions& options) {
  std::string problem;
  for (std::uint32_t n = 0; n < options.ports.count(); ++n) {
    link = {};
    link.device = std::make_shared<tcp::Device>(at_port(address, options.ports.at(start, n)));
    try {
      return listen_on(link, neighbour, options);
    } catch (const std::exception& e) {
      problem = e.what();  // in use, mostly: the next may be free
    }
  }
  throw std::runtime_error(
      fmt::format("no port of [cluster] ports = \"{}-{}\" is free, of which each worker takes two "
                  "while its group is formed; of the last: {}",
                  options.ports.first, options.ports.last, problem));
}

gloo::transport::Pair& GlooLinks::pair(std::uint32_t neighbour) const {
  const Link& link = neighbour == left() ? left_ : right_;
  return *link.context->getPair(static_cast<int>(neighbour));
}

gloo::transport::UnboundBuffer& GlooLinks::end_of(Buffer& buffer, std::uint32_t neighbour) const {
  return neighbour == left() || !buffer.right ? *buffer.left : *buffer.right;
}

std::string GlooLinks::address_for(std::uint32_t neighbour) const {
  if (size_ == 1) return {};
  const auto bytes = pair(neighbour).address().bytes();
  return {bytes.begin(), bytes.end()};
}

Status GlooLinks::connect(const std::string& left_address, const std::string& right_address) {
  if (size_ == 1) return {};
  // A listening end waits until the other has dialled. Neighbours in opposite
  // orders cannot all wait in a circle; an odd ring's last and first are both
  // even, and the last then waits for the first alone.
  connecting_ = true;
  const bool left_first = rank_ % 2 == 0;
  for (const bool to_left : {left_first, !left_first}) {
    if (!to_left && right() == left()) continue;
    const std::uint32_t peer = to_left ? left() : right();
    ANTDT_RETURN_IF_ERROR(guarded("connect to a neighbour of the ring", [&] {
      pair(peer).connect(to_vector(to_left ? left_address : right_address));
      return true;
    }));
  }
  connecting_ = false;
  return {};
}

Result<GlooLinks::Buffer*> GlooLinks::buffer(void* data, std::size_t bytes) {
  if (aborted_ || !death_.empty()) return tl::unexpected(dead().error());
  const std::lock_guard lock(mutex_);
  for (auto it = buffers_.begin(); it != buffers_.end(); ++it) {
    if (it->left->ptr != data || it->left->size != bytes) continue;
    buffers_.splice(buffers_.end(), buffers_, it);
    return &buffers_.back();
  }
  if (buffers_.size() >= kMaxBuffers) buffers_.pop_front();
  Buffer& buffer = buffers_.emplace_back();
  buffer.left = left_.context->createUnboundBuffer(data, bytes);
  if (right_.context != left_.context) {
    buffer.right = right_.context->createUnboundBuffer(data, bytes);
  }
  return &buffer;
}

Status GlooLinks::send(Buffer& from, std::uint32_t to, std::uint64_t slot, std::size_t offset,
                       std::size_t bytes) {
  if (send_delay_) hold_back(send_delay_(bytes));
  return guarded("send", [&] {
    end_of(from, to).send(static_cast<int>(to), slot, offset, bytes);
    return true;
  });
}

Status GlooLinks::receive(Buffer& into, std::uint32_t from, std::uint64_t slot, std::size_t offset,
                          std::size_t bytes) {
  return guarded("receive", [&] {
    end_of(into, from).recv(static_cast<int>(from), slot, offset, bytes);
    return true;
  });
}

Status GlooLinks::wait_sent(Buffer& buffer, std::uint32_t to) {
  return guarded("send", [&] { return end_of(buffer, to).waitSend(to_ms(operation_timeout_)); });
}

Status GlooLinks::wait_received(Buffer& buffer, std::uint32_t from) {
  return guarded("receive",
                 [&] { return end_of(buffer, from).waitRecv(to_ms(operation_timeout_)); });
}

// A slow link would hold an abort up no longer than this.
void GlooLinks::hold_back(Duration delay) const {
  constexpr Duration kSlice = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + delay;
  while (!aborted_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_until(std::min(end, std::chrono::steady_clock::now() + kSlice));
  }
}

template <class Call>
Status GlooLinks::guarded(const char* what, Call call) {
  if (aborted_ || !death_.empty()) return die("aborted");
  try {
    // Gloo remembers an abort that comes before the wait, so none is missed.
    if (!call() || aborted_) return die("aborted");
  } catch (const std::exception& e) {
    return die(fmt::format("cannot {}: {}", what, e.what()));
  }
  return {};
}

Status GlooLinks::die(std::string cause) {
  if (death_.empty()) {
    death_ = std::move(cause);
    const std::lock_guard lock(mutex_);
    buffers_.clear();
    close_pairs();
  }
  return dead();
}

void GlooLinks::close_pairs() {
  if (!left_.context) return;
  pair(left()).close();
  if (right() != left()) pair(right()).close();
}

Status GlooLinks::dead() const {
  if (aborted_) return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank_);
  return fail(ErrorKind::kIo, "the collective of rank {} of {} is broken: {}", rank_, size_,
              death_);
}

void GlooLinks::abort() {
  aborted_ = true;
  const std::lock_guard lock(mutex_);
  for (const Buffer& buffer : buffers_) {
    for (auto* end : {buffer.left.get(), buffer.right.get()}) {
      if (end == nullptr) continue;
      end->abortWaitRecv();
      end->abortWaitSend();
    }
  }
  // Gloo has no abort for a connection in the making; a closed pair ends it.
  if (connecting_) close_pairs();
}

}  // namespace antdt::trainer
