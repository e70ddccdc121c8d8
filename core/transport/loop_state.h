// What an EventLoop is made of, for the two sources that implement it.
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

// Something that can be ready. Shared, so that a callback may end its own watch
// while it runs.
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
  std::map<std::uint64_t, OwnedFd> pidfds;  // by number of their watch
  bool stopping = false;

  // A descriptor's number is used again by the system, a watch's is not: what
  // epoll reported of a watch that has ended meanwhile is told by its number.
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
  // Waits for `sockets` and the epoll set, and adds those sockets that are ready to `ready`;
  // whether the epoll set is.
  std::function<bool(State&)> wait_with_sockets;
  std::vector<std::shared_ptr<LoopWatch>> ready;  // of this turn

  std::uint64_t next_timer = 1;
  std::map<std::pair<MonoTime, std::uint64_t>, Callback> timers;
  std::unordered_map<std::uint64_t, MonoTime> time_of_timer;
  MonoTime armed_for = MonoTime::max();
  std::deque<Callback> turn_end;  // a deque: callbacks may add to it while it runs

  std::uint64_t add_watch(int fd, Callback on_ready);
  void remove_watch(int fd);
  void arm_timer();
  void wait();
  void collect_descriptors(int timeout_ms);
  void run_due_timers();
  void turn();
};

}  // namespace antdt
