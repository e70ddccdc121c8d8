// A member's tcp connections to some of the others (tcp_link.h), and messages over them.
//
// States: listening -> connected -> dead. The first failure, or abort(), is final: every connection
// is closed, which releases the other ends in turn.
//
// One thread uses the links; abort() may come from any other.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"
#include "trainer/collective/options.h"
#include "trainer/collective/tcp/tcp_link.h"

namespace antdt::trainer {

class TcpLinks {
 public:
  // kUsage for an invalid rank; kIo.
  [[nodiscard]] static Result<std::unique_ptr<TcpLinks>> listen(std::uint32_t rank,
                                                                std::uint32_t size,
                                                                const CollectiveOptions& options);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  // "10.0.0.7:29400"; empty for a single member.
  [[nodiscard]] const std::string& address() const { return address_; }

  // Blocks until all `peers` are connected, which call the same; `addresses` is by rank. Afterwards
  // it does not listen any more. kRefused if a peer is not a member or has another rank, kIo if one
  // cannot be reached in time, kAborted after abort().
  [[nodiscard]] Status connect(const std::vector<std::uint32_t>& peers,
                               std::span<const std::string> addresses, const GroupKey& key);

  // Starts to send. The bytes must stay valid until flush() has returned, or until the peer's
  // answer to them has been received.
  [[nodiscard]] Status send(std::uint32_t to, std::span<const std::byte> bytes);
  // Blocks until a message of exactly this size has arrived; meanwhile, sending goes on.
  [[nodiscard]] Status receive(std::uint32_t from, std::span<std::byte> bytes);
  // Blocks until everything has been passed to the kernel.
  [[nodiscard]] Status flush();

  void abort();
  // Ends them, as an error does.
  void end(const Error& why) { static_cast<void>(die(why.message, why.kind)); }

 private:
  TcpLinks(std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options);
  [[nodiscard]] Status open(const CollectiveOptions& options);
  [[nodiscard]] Status open_in_range(const std::string& address, PortRange ports);
  [[nodiscard]] TcpLink& link_to(std::uint32_t peer);
  // Writes what the kernel accepts now.
  [[nodiscard]] Status write(TcpLink& link);
  // Waits until `reading` (null: none) may have bytes, or something can be written.
  [[nodiscard]] Status wait(const TcpLink* reading);
  [[nodiscard]] Status alive();
  [[nodiscard]] Status die(std::string cause, ErrorKind kind = ErrorKind::kIo);

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const bool encrypt_;
  const Duration connect_timeout_;
  const Duration operation_timeout_;
  const std::function<Duration(std::size_t)> send_delay_;
  std::atomic<bool> aborted_ = false;
  OwnedFd wake_;  // readable after an abort
  OwnedFd listener_;
  std::string address_;
  std::string death_;  // why it is dead; empty while it is alive
  ErrorKind death_kind_ = ErrorKind::kIo;
  std::vector<TcpLink> links_;
  std::vector<pollfd> polled_;
};

}  // namespace antdt::trainer
