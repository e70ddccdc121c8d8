// Requests to a job daemon: over its jobd.sock, or through an agent of a host where its job has
// processes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"

namespace antdt::launcher {

struct JobStatus {
  std::string status_json;
  std::vector<std::string> events;  // JSON objects, from the requested number on
  std::uint64_t next_event = 0;
};

class JobLink {
 public:
  // Neither fails at once if the other end is not there yet, but waits for it.
  [[nodiscard]] static Result<JobLink> open(transport::Context& context,
                                            const std::string& jobd_socket);
  // Through the agent at HOST:PORT. `keys` is a directory like that of cluster.keys: it has the
  // user's job.key, and the agent's public key in agents/. Who the user is, the agent says, and
  // not the request.
  [[nodiscard]] static Result<JobLink> open_through(transport::Context& context,
                                                    const std::string& host_port,
                                                    const std::string& keys,
                                                    const std::string& job);

  // These wait for the answer; kUnreachable after `timeout`. Through an agent, kRefused may also
  // say that no daemon of the job is connected to it.
  [[nodiscard]] Result<JobStatus> status(std::uint64_t events_from, Duration timeout);
  // Sends an operator's request (wire::EvictWorkers, InjectRules, ResizeJob, SkipRecords,
  // ApproveAction, StopJob). An error of kind kRefused says why the job daemon refuses it. It is
  // sent once: if the answer is lost, the request may have been carried out.
  template <class Order>
  [[nodiscard]] Status order(const Order& order, Duration timeout);
  // The same for a person, who has it take as long as the job's journal needs: `waits` is called
  // after each `every` without an answer, and its error is the order's. An agent that the job's
  // daemon is away from did not pass the order on, and is given it again.
  template <class Order>
  [[nodiscard]] Status order(const Order& order, Duration every,
                             const std::function<Status()>& waits);

  // For an event loop that watches socket(): sends a request without waiting, unless there is no
  // room for it, and takes an answer that has come. The answer's envelope repeats the number.
  template <class Request>
  void send(const Request& request, std::uint64_t number = 0);
  [[nodiscard]] std::optional<wire::Packet> receive();
  [[nodiscard]] transport::Socket& socket() { return socket_; }
  [[nodiscard]] bool goes_through_agent() const { return !job_.empty(); }

 private:
  JobLink(transport::Socket socket, std::string job, std::string agent, std::string keys)
      : socket_(std::move(socket)),
        job_(std::move(job)),
        agent_(std::move(agent)),
        keys_(std::move(keys)) {}
  [[nodiscard]] Result<wire::Packet> ask(const wire::Packet& packet, Duration timeout);
  template <class Request>
  [[nodiscard]] wire::Packet packet_of(const Request& request, std::uint64_t number = 0) const;

  transport::Socket socket_;
  std::string job_;    // whose daemon the agent passes requests on to; empty on jobd.sock
  std::string agent_;  // as the user names it; empty on jobd.sock
  std::string keys_;   // the directory with those for it
};

}  // namespace antdt::launcher
