// The data of an EventLoop, for the two sources that implement it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/loop.h"
#include "core/os/owned_fd.h"

namespace antdt {

// Something that can become ready. It is shared, so that a callback may end its own watch while it
// runs.
struct LoopWatch {
  EventLoop::Callback on_ready;
  bool active = true;
};

struct EventLoop::State {
  explicit State(const Clock& loop_clock);

  const Clock& clock;
  OwnedFd epoll;
  OwnedFd timer;
  OwnedFd stop_event;
  std::vector<OwnedFd> signal_fds;
  std::map<std::uint64_t, OwnedFd> pidfds;  // by the number of the watch
  bool stopping = false;

  // The system reuses a descriptor's number, but the number of a watch is unique. So an event that
  // epoll reported for a watch that has ended meanwhile is recognised.
  std::uint64_t next_watch = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<LoopWatch>> watches;
  std::unordered_map<int, std::uint64_t> watch_of_fd;

  // Message sockets: loop_sockets.cc. A loop that never watched one waits without ZeroMQ.
  struct WatchedSocket {
    void* handle;
    std::shared_ptr<LoopWatch> watch;
  };
  std::vector<WatchedSocket> sockets;
  bool sockets_changed = false;
  // Waits for `sockets` and the epoll set, adds the sockets that are ready to `ready`, and returns
  // whether the epoll set is ready.
  std::function<bool(State&)> wait_with_sockets;
  std::vector<std::shared_ptr<LoopWatch>> ready;  // in this turn

  std::uint64_t next_timer = 1;
  std::map<std::pair<MonoTime, std::uint64_t>, Callback> timers;
  std::unordered_map<std::uint64_t, MonoTime> time_of_timer;
  MonoTime armed_for = MonoTime::max();
  std::deque<Callback> turn_end;  // a deque, because callbacks may add to it while it runs

  // `events`: EPOLLIN or EPOLLOUT.
  std::uint64_t add_watch(int fd, std::uint32_t events, Callback on_ready);
  void remove_watch(int fd);
  void arm_timer();
  void wait();
  void collect_descriptors(int timeout_ms);
  void run_due_timers();
  void turn();
};

}  // namespace antdt
