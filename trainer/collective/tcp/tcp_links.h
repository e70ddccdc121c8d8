// A member's tcp connections to some of the others (tcp_link.h), and messages over them.
//
// States: listening -> connected -> dead. With CollectiveOptions::groups it goes on listening while
// it is connected, and connects further members when they are first needed. The first failure, or
// abort(), is final: every connection is closed, which releases the other ends in turn.
//
// One thread uses the links; abort() may come from any other.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/collective/greeting.h"
#include "trainer/collective/handshake.h"
#include "trainer/collective/link_ledger.h"
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
  // it does not listen any more, unless groups are wanted. kRefused if a peer is not a member or
  // has another rank, kIo if one cannot be reached in time, kAborted after abort().
  [[nodiscard]] Status connect(const std::vector<std::uint32_t>& peers,
                               std::span<const std::string> addresses, const GroupKey& key);

  // Blocks until all `peers` are connected, which call the same sooner or later; the own rank is
  // none of them. At once if all are. kUsage, which ends nothing, if no groups are wanted;
  // kIo if one is gone; kAborted.
  [[nodiscard]] Status reach(const std::vector<std::uint32_t>& peers);

  // Starts to send. The bytes must stay valid until flush() has returned, or until the peer's
  // answer to them has been received.
  [[nodiscard]] Status send(std::uint32_t to, std::span<const std::byte> bytes);
  // Blocks until a message of exactly this size has arrived; meanwhile, sending goes on.
  [[nodiscard]] Status receive(std::uint32_t from, std::span<std::byte> bytes);
  // Blocks until everything has been passed to the kernel.
  [[nodiscard]] Status flush();

  // Memory for `bytes` of what arrives, to be added to values; for whoever uses the links now.
  [[nodiscard]] std::span<double> staging(std::size_t bytes);
  // What was exchanged with each member.
  [[nodiscard]] const std::shared_ptr<LinkLedger>& ledger() const { return ledger_; }

  // Ends something else together with the links: `died` is called in the thread that uses them,
  // `aborted` in that of abort(), or now if they were aborted already. Neither may block.
  void end_together(std::function<void(const Error&)> died, std::function<void()> aborted);
  // Whether they may be used; otherwise the reason for which they are dead.
  [[nodiscard]] Status alive();
  void abort();
  // Ends them, as an error does.
  void end(const Error& why) { static_cast<void>(die(why.message, why.kind)); }

 private:
  TcpLinks(std::uint32_t rank, std::uint32_t size, const CollectiveOptions& options);
  [[nodiscard]] Status open(const CollectiveOptions& options);
  [[nodiscard]] Status open_in_range(const std::string& address, PortRange ports);
  void adopt(std::map<std::uint32_t, Greeting::Met> met);
  [[nodiscard]] bool is_connected_to(std::uint32_t peer) const;
  [[nodiscard]] TcpLink& link_to(std::uint32_t peer);
  // Writes what the kernel accepts now.
  [[nodiscard]] Status write(TcpLink& link);
  // Waits until `reading` (null: none) may have bytes, or something can be written. The time counts
  // as waiting for `peer`.
  [[nodiscard]] Status wait(const TcpLink* reading, std::uint32_t peer);
  [[nodiscard]] Status poll_once(const TcpLink* reading);
  void close();
  [[nodiscard]] Status die(std::string cause, ErrorKind kind = ErrorKind::kIo);

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const bool encrypt_;
  const bool groups_;
  const Duration connect_timeout_;
  const Duration operation_timeout_;
  const CollectiveOptions::SendDelay send_delay_;
  std::atomic<bool> aborted_ = false;
  OwnedFd wake_;  // readable after an abort
  OwnedFd listener_;
  std::vector<std::string> addresses_;  // of all members, by rank
  std::optional<Greeting> greeting_;    // as long as it listens
  std::function<void(const Error&)> on_death_;
  std::mutex abort_mutex_;  // an abort may come while they are connected
  std::function<void()> on_abort_;
  std::string address_;
  std::string death_;  // why it is dead; empty while it is alive
  ErrorKind death_kind_ = ErrorKind::kIo;
  std::vector<TcpLink> links_;
  std::vector<pollfd> polled_;
  std::vector<double> staging_;
  const std::shared_ptr<LinkLedger> ledger_;
};

}  // namespace antdt::trainer
