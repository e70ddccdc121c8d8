// Requests to a job daemon, over its jobd.sock.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"

namespace antdt::launcher {

struct JobStatus {
  std::string status_json;
  std::vector<std::string> events;  // JSON objects, from the requested number on
  std::uint64_t next_event = 0;
};

class JobLink {
 public:
  // Does not fail at once if the daemon is not there yet, but waits for it.
  [[nodiscard]] static Result<JobLink> open(transport::Context& context,
                                            const std::string& jobd_socket);

  // Both wait for the answer; kUnreachable after `timeout`.
  [[nodiscard]] Result<JobStatus> status(std::uint64_t events_from, Duration timeout);
  [[nodiscard]] Status stop(const std::string& reason, std::chrono::milliseconds grace,
                            Duration timeout);
  // Sends an operator's request (wire::EvictWorkers, InjectRules, ResizeJob, SkipRecords,
  // ApproveAction, StopJob). An error of kind kRefused says why the job daemon refuses it. It is
  // sent once: if the answer is lost, the request may have been carried out.
  template <class Order>
  [[nodiscard]] Status order(const Order& order, Duration timeout);

 private:
  explicit JobLink(transport::Socket socket) : socket_(std::move(socket)) {}
  transport::Socket socket_;
};

}  // namespace antdt::launcher
