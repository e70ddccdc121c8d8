#include "trainer/collective/gloo_links.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>
#include <sys/socket.h>

#include <exception>
#include <vector>

namespace antdt::trainer {
namespace {

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
    : rank_(rank), size_(size), operation_timeout_(options.operation_timeout) {}

GlooLinks::~GlooLinks() {
  const std::lock_guard lock(mutex_);
  buffers_.clear();
}

Status GlooLinks::open(const RingOptions& options) {
  if (options.interface.empty()) ANTDT_RETURN_IF_ERROR(check_resolves(options.hostname));
  gloo::transport::tcp::attr attr;
  attr.iface = options.interface;
  attr.hostname = options.hostname;
  try {
    device_ = gloo::transport::tcp::CreateDevice(attr);
    context_ = device_->createContext(static_cast<int>(rank_), static_cast<int>(size_));
    // A pair waits five times its context's timeout for its connection.
    context_->setTimeout(to_ms(options.connect_timeout / 5));
    context_->createPair(static_cast<int>(left()));
    if (right() != left()) context_->createPair(static_cast<int>(right()));
  } catch (const std::exception& e) {
    return fail(ErrorKind::kIo, "cannot listen for the ring's neighbours on {} '{}': {}",
                options.interface.empty() ? "address" : "interface",
                options.interface.empty() ? options.hostname : options.interface, e.what());
  }
  return {};
}

std::string GlooLinks::address_for(std::uint32_t neighbour) const {
  if (size_ == 1) return {};
  const auto bytes = context_->getPair(static_cast<int>(neighbour))->address().bytes();
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
      context_->getPair(static_cast<int>(peer))
          ->connect(to_vector(to_left ? left_address : right_address));
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
    if ((*it)->ptr != data || (*it)->size != bytes) continue;
    buffers_.splice(buffers_.end(), buffers_, it);
    return buffers_.back().get();
  }
  if (buffers_.size() >= kMaxBuffers) buffers_.pop_front();
  buffers_.push_back(context_->createUnboundBuffer(data, bytes));
  return buffers_.back().get();
}

Status GlooLinks::send(Buffer& from, std::uint32_t to, std::uint64_t slot, std::size_t offset,
                       std::size_t bytes) {
  return guarded("send", [&] {
    from.send(static_cast<int>(to), slot, offset, bytes);
    return true;
  });
}

Status GlooLinks::receive(Buffer& into, std::uint32_t from, std::uint64_t slot, std::size_t offset,
                          std::size_t bytes) {
  return guarded("receive", [&] {
    into.recv(static_cast<int>(from), slot, offset, bytes);
    return true;
  });
}

Status GlooLinks::wait_sent(Buffer& buffer) {
  return guarded("send", [&] { return buffer.waitSend(to_ms(operation_timeout_)); });
}

Status GlooLinks::wait_received(Buffer& buffer) {
  return guarded("receive", [&] { return buffer.waitRecv(to_ms(operation_timeout_)); });
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
  if (!context_) return;
  context_->getPair(static_cast<int>(left()))->close();
  if (right() != left()) context_->getPair(static_cast<int>(right()))->close();
}

Status GlooLinks::dead() const {
  if (aborted_) return fail(ErrorKind::kAborted, "the collective of rank {} was aborted", rank_);
  return fail(ErrorKind::kIo, "the collective of rank {} of {} is broken: {}", rank_, size_,
              death_);
}

void GlooLinks::abort() {
  aborted_ = true;
  const std::lock_guard lock(mutex_);
  for (const auto& buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
  // Gloo has no abort for a connection in the making; a closed pair ends it.
  if (connecting_) close_pairs();
}

}  // namespace antdt::trainer
