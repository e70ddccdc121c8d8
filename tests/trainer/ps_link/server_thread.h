// A parameter server with its own thread and context, as if it were a process.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/loop.h"
#include "core/transport/socket.h"
#include "trainer/ps_link/server_loop.h"

namespace antdt::ps {

class ServerThread {
 public:
  ServerThread(const Group& group, std::uint32_t index)
      : ServerThread(group, index, group.sockets.at(index)) {}
  // A process at another address than the group names for its server: a backup.
  ServerThread(const Group& group, std::uint32_t index, const std::string& endpoint)
      : socket_(transport::Socket::bind_ipc(context_, endpoint)) {
    EXPECT_TRUE(socket_) << socket_.error().message;
    auto server = ServerLoop::open(loop_, context_, *socket_, group, index);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    loop_.watch_fd(wake_, [this] { run_posted(); });
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServerThread() {
    loop_.stop_from_any_thread();
    thread_.join();
    close(wake_);
  }

  // Calls it on the server's thread.
  void post(std::function<void(ServerLoop&)> call) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(call));
    }
    const std::uint64_t one = 1;
    EXPECT_EQ(write(wake_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  // Calls it there, and waits for its answer.
  template <class F>
  auto ask(F question) {
    std::promise<decltype(question(std::declval<ServerLoop&>()))> answer;
    post([&](ServerLoop& server) { answer.set_value(question(server)); });
    return answer.get_future().get();
  }
  [[nodiscard]] std::future<wire::PsSaved> cut(const wire::PsCut& order) {
    const auto saved = std::make_shared<std::promise<wire::PsSaved>>();
    post([saved, order](ServerLoop& server) {
      server.cut(order, [saved](const wire::PsSaved& s) { saved->set_value(s); });
    });
    return saved->get_future();
  }

 private:
  void run_posted() {
    std::uint64_t count = 0;
    EXPECT_EQ(read(wake_, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    std::deque<std::function<void(ServerLoop&)>> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(posted_);
    }
    for (const auto& call : calls) call(*server_);
  }

  SteadyClock clock_;
  EventLoop loop_{clock_};
  transport::Context context_;
  Result<transport::Socket> socket_;
  std::unique_ptr<ServerLoop> server_;  // goes before its socket
  int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex_;
  std::deque<std::function<void(ServerLoop&)>> posted_;
  std::thread thread_;
};

}  // namespace antdt::ps
