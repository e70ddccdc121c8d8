// Answers GET /metrics over HTTP on a daemon's loop, one request a connection.
//
// Nothing that a client does may harm the daemon: a request is bounded in size and time, so is the
// number of connections (the oldest makes room for a new one), and the text is made at most twice a
// second however often it is asked for.
// There is no encryption and no authentication: whoever reaches the address can read the metrics,
// which is why the documentation recommends the loopback address.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/loop.h"
#include "core/metrics/http_request.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt::metrics {

class MetricsServer {
 public:
  static constexpr std::size_t kMostConnections = 16;
  // For the request to arrive and the answer to be taken.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  // Listens at `end_point`, "127.0.0.1:9400"; port 0 stands for any free one. `content` returns the
  // metrics as text. The error (kUsage) says that the address cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> listen(
      EventLoop& loop, const std::string& end_point, std::function<std::string()> content,
      Duration patience = kPatience);
  // The same error if one cannot listen there now.
  [[nodiscard]] static Status check(const std::string& end_point);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Where it listens, with the port that was chosen.
  [[nodiscard]] const std::string& address() const { return address_; }
  // How many clients are connected.
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }

 private:
  struct Connection {
    OwnedFd fd;
    TimerId deadline;
    std::string received;
    std::string answer;
    std::size_t sent = 0;
    std::size_t ignored = 0;  // bytes that came after the request
  };

  MetricsServer(EventLoop& loop, OwnedFd listener, std::string address,
                std::function<std::string()> content, Duration patience);
  void watch_listener();
  void accept_all();
  void add(OwnedFd fd);
  void read(std::uint64_t number);
  void answer(std::uint64_t number, HttpStatus status);
  void write(std::uint64_t number);
  void await_close(std::uint64_t number);
  void drop(std::uint64_t number);
  [[nodiscard]] const std::string& text();

  EventLoop& loop_;
  OwnedFd listener_;
  const std::string address_;
  const std::function<std::string()> content_;
  const Duration patience_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_ = 1;
  std::string text_;
  std::optional<MonoTime> made_at_;
  TimerId accept_again_{};
};

}  // namespace antdt::metrics
