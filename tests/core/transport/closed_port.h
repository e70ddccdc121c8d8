// A tcp port on which no process listens or will listen.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace antdt {

class ClosedPort {
 public:
  ClosedPort() {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(where);
    auto* generic = reinterpret_cast<sockaddr*>(&where);
    EXPECT_EQ(bind(fd_, generic, size), 0);
    EXPECT_EQ(getsockname(fd_, generic, &size), 0);
    port_ = ntohs(where.sin_port);
  }
  ~ClosedPort() { close(fd_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
};

}  // namespace antdt
