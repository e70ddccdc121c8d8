// Questions and orders to a job daemon, over its jobd.sock.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"

namespace antdt::launcher {

struct JobStatus {
  std::string status_json;
  std::vector<std::string> events;  // JSON objects, from the number asked for
  std::uint64_t next_event = 0;
};

class JobLink {
 public:
  // Never fails at once: a daemon that is not there yet is waited for.
  [[nodiscard]] static Result<JobLink> open(transport::Context& context,
                                            const std::string& jobd_socket);

  // Each waits for the answer; kUnreachable after `timeout`.
  [[nodiscard]] Result<JobStatus> status(std::uint64_t events_from, Duration timeout);
  [[nodiscard]] Status stop(const std::string& reason, std::chrono::milliseconds grace,
                            Duration timeout);
  // An operator's wish (wire::EvictWorkers, InjectRules, ResizeJob, SkipRecords, ApproveAction,
  // StopJob); an
  // error of kind kRefused says why the job daemon does not do it. Asked once:
  // when the answer is lost it may have been done.
  template <class Order>
  [[nodiscard]] Status order(const Order& order, Duration timeout);

 private:
  explicit JobLink(transport::Socket socket) : socket_(std::move(socket)) {}
  transport::Socket socket_;
};

}  // namespace antdt::launcher
