// A server that answers every fetch at once with the same piece and stores nothing. Its rate is the
// limit that ZeroMQ and the clients set for the shard service.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/result.h"
#include "core/transport/socket.h"

namespace antdt::bench {

class EchoServer {
 public:
  // Serves on its own thread until it is destroyed.
  [[nodiscard]] static Result<std::unique_ptr<EchoServer>> start(transport::Context& context,
                                                                 const std::string& path);
  ~EchoServer();

 private:
  explicit EchoServer(transport::Socket socket);
  void serve();
  transport::Socket socket_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace antdt::bench
