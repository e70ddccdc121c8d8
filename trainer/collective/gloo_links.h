// A member's two links in the ring: to the rank before (left) and to the rank
// after (right), as Gloo pairs. With two members both are one pair.
//
// States: listening -> connected -> dead. The first failure, or abort(), is
// final: the buffers are taken back from Gloo, so that nothing arrives in
// memory that the caller may free, and the pairs are closed, which releases
// the neighbours in turn. Gloo's exceptions end here.
//
// One thread uses the links; abort() may come from any other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "trainer/collective/ring.h"

namespace gloo::transport {
class Context;
class Device;
class Pair;
class UnboundBuffer;
namespace tcp {
struct attr;
}
}  // namespace gloo::transport

namespace antdt::trainer {

class GlooLinks {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GlooLinks>> listen(std::uint32_t rank,
                                                                 std::uint32_t size,
                                                                 const RingOptions& options);
  ~GlooLinks();

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t left() const { return (rank_ + size_ - 1) % size_; }
  [[nodiscard]] std::uint32_t right() const { return (rank_ + 1) % size_; }
  [[nodiscard]] std::string address_for(std::uint32_t neighbour) const;

  // Connects to both neighbours; blocks until they do the same.
  [[nodiscard]] Status connect(const std::string& left_address, const std::string& right_address);

  // Memory that messages are sent from or received into. Registrations are
  // kept (the last kMaxBuffers of them), so passing the same memory again is
  // cheap. The pointer is valid until the next call of buffer().
  struct Buffer {
    std::unique_ptr<gloo::transport::UnboundBuffer> left;
    std::unique_ptr<gloo::transport::UnboundBuffer> right;  // null: that on the left serves both
  };
  [[nodiscard]] Result<Buffer*> buffer(void* data, std::size_t bytes);

  // Start to send or receive `bytes` at `offset`; messages on one link in one
  // direction are matched by `slot`.
  [[nodiscard]] Status send(Buffer& from, std::uint32_t to, std::uint64_t slot, std::size_t offset,
                            std::size_t bytes);
  [[nodiscard]] Status receive(Buffer& into, std::uint32_t from, std::uint64_t slot,
                               std::size_t offset, std::size_t bytes);
  // Wait for the oldest unfinished one of that buffer on that link; where all pairs are of
  // one device, on either.
  [[nodiscard]] Status wait_sent(Buffer& buffer, std::uint32_t to);
  [[nodiscard]] Status wait_received(Buffer& buffer, std::uint32_t from);

  void abort();

 private:
  static constexpr std::size_t kMaxBuffers = 32;
  GlooLinks(std::uint32_t rank, std::uint32_t size, const RingOptions& options);
  [[nodiscard]] Status open(const RingOptions& options);
  // Gloo binds all pairs of a device to one port: to any, or to that of the device's
  // address. In a range of ports each link has therefore a device of its own.
  struct Link {
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::transport::Context> context;
  };
  void create_pairs(const RingOptions& options);
  void listen_on(Link& link, std::uint32_t neighbour, const RingOptions& options);
  void listen_in_range(Link& link, std::uint32_t neighbour,
                       const gloo::transport::tcp::attr& address, std::uint32_t start,
                       const RingOptions& options);
  [[nodiscard]] gloo::transport::Pair& pair(std::uint32_t neighbour) const;
  [[nodiscard]] gloo::transport::UnboundBuffer& end_of(Buffer& buffer,
                                                       std::uint32_t neighbour) const;
  // Runs one call of Gloo's and turns what it throws into the final error.
  template <class Call>
  [[nodiscard]] Status guarded(const char* what, Call call);
  [[nodiscard]] Status die(std::string cause);
  [[nodiscard]] Status dead() const;
  void close_pairs();
  void hold_back(Duration delay) const;

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const Duration operation_timeout_;
  const std::function<Duration(std::size_t)> send_delay_;
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> connecting_ = false;
  std::string death_;  // why it is dead; empty while alive
  Link left_;
  Link right_;                 // the same where all pairs are of one device
  std::mutex mutex_;           // of what abort() touches: buffers_ and the pairs' closing
  std::list<Buffer> buffers_;  // least recently used first
};

}  // namespace antdt::trainer
