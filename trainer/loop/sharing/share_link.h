// A member's way to the desk of its group, by datagrams; in the process of the group's first
// member, the desk itself.
//
//   member ──offer, ask──> socket ──> thread of the desk's process: desk (share_desk.h)
//          <────────────── run or nothing ──┘
//
// Datagrams may be lost: an ask is repeated until it is answered, and contains the offer. An ask
// waits as long as a member of the group has not offered its part, so it has no deadline of its
// own: if nobody gets on for failure.hang_after, the job daemon ends the generation. Whether
// datagrams pass at all is tried before the first step. The desk's own member asks it without
// datagrams.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/os/port_range.h"
#include "core/result.h"
#include "trainer/collective/handshake.h"
#include "trainer/loop/sharing/share_messages.h"
#include "trainer/worker/sharing/share_desk.h"

namespace antdt::trainer {

struct ShareLinkOptions {
  worker::sharing::ShareRules rules;
  PortRange ports = {};                                 // [cluster] ports
  Duration connect_timeout = std::chrono::seconds(10);  // for the desk's answer to a greeting
  // Fault injection: how much longer a message of `bytes` bytes takes. Called from any thread.
  std::function<Duration(std::size_t bytes)> send_delay = {};
};

// A run and the records that it has.
struct HandedRun {
  worker::sharing::Answer answer;
  std::vector<wire::Piece> records;
};

class ShareLink {
 public:
  // Opens a socket at this member's `address` (numeric, without a port). kIo.
  [[nodiscard]] static Result<std::unique_ptr<ShareLink>> open(const std::string& address,
                                                               std::uint32_t rank,
                                                               std::uint32_t size,
                                                               const GroupKey& key,
                                                               ShareLinkOptions options);
  ~ShareLink();
  ShareLink(const ShareLink&) = delete;
  ShareLink& operator=(const ShareLink&) = delete;

  // Where the group's members reach the desk, if this is the desk's process; "10.0.0.1:29400".
  [[nodiscard]] Result<std::string> address() const;
  // The address of the group's desk. Greets it and waits for its answer: kUnreachable if none
  // comes, kAborted after abort(), kIo.
  [[nodiscard]] Status connect(const std::string& desk);

  // By the training thread.
  void offer(const worker::sharing::Offered& offer, const std::vector<wire::Piece>& part);
  // Waits for the answer. kAborted after abort(); kIo; kCorrupt if the answer makes no sense.
  [[nodiscard]] Result<HandedRun> ask(const worker::sharing::Asked& asked);

  // Ends an ask in progress and every later one, from any thread.
  void abort();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Client {              // of the desk: a member of the group
    std::optional<Step> step;  // of its newest offer
    std::vector<wire::Piece> part;
    std::string address;  // of its socket, as the system has it; empty: not heard yet
  };
  struct Outgoing {
    std::string to;
    FromDesk message;
  };
  ShareLink(worker::sharing::ShareGroup group, std::uint32_t member, ShareKeys keys,
            ShareLinkOptions options);
  [[nodiscard]] bool has_desk() const { return member_ == 0; }
  [[nodiscard]] ToDesk message(const worker::sharing::Offered& offer, std::uint32_t number) const;
  void send_to_desk(const ToDesk& message);
  // kUnreachable: no answer came before the deadline.
  [[nodiscard]] Result<FromDesk> ask_over_the_network(const ToDesk& message,
                                                      std::optional<Time> deadline);
  // False: nothing is there that a desk of this generation said.
  [[nodiscard]] bool receive(FromDesk& into);
  [[nodiscard]] Result<FromDesk> ask_here(const ToDesk& message);
  void serve();
  void heard(std::string_view datagram, const std::string& from);
  [[nodiscard]] std::vector<Outgoing> to_desk(const ToDesk& message);
  void answer(const worker::sharing::Answer& answer, std::vector<Outgoing>& out);
  void send_to_members(const std::vector<Outgoing>& messages) const;
  void delay(std::size_t bytes) const;

  const worker::sharing::ShareGroup group_;
  const std::uint32_t member_;  // index in the group
  const ShareKeys keys_;
  const ShareLinkOptions options_;
  OwnedFd socket_;
  OwnedFd wake_;                   // readable after an abort
  std::vector<wire::Piece> part_;  // of this member in the present step
  std::vector<char> buffer_;       // for a datagram; of the one thread that receives

  // Of the desk; `mutex_` guards all of it.
  std::mutex mutex_;
  std::condition_variable answered_;
  bool aborted_ = false;
  worker::sharing::ShareDesk desk_;
  std::vector<Client> clients_;  // by index in the group
  std::optional<FromDesk> own_;  // the newest answer to this process's member
  std::thread thread_;
};

}  // namespace antdt::trainer
