// The single loop of a daemon: sockets, file descriptors, child exits, signals and timers, all on
// the thread that calls run().
//
// A turn waits until something is ready, runs the callbacks of everything that is ready, and then
// the turn-end callbacks. There, a journal commits once for the whole turn and sends replies
// afterwards. Nothing here is thread-safe except stop_from_any_thread().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"

namespace antdt {

namespace transport {
class Socket;
}

using TimerId = Id<struct TimerTag>;

class EventLoop {
 public:
  using Callback = std::function<void()>;

  explicit EventLoop(const Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  [[nodiscard]] MonoTime now() const;

  // Calls `on_ready` in every turn in which `fd` is readable (or broken). Any callback may call
  // unwatch_fd, including the descriptor's own.
  void watch_fd(int fd, Callback on_ready);
  // The same for a descriptor that can be written to. There is one watch for each descriptor: this
  // one takes the place of a watch for reading.
  void watch_writable_fd(int fd, Callback on_ready);
  void unwatch_fd(int fd);

  // The same for a message socket. `on_ready` reads as much as it wants; in the next turn it is
  // called for the rest. Unwatch the socket before it is destroyed.
  void watch_socket(transport::Socket& socket, Callback on_ready);
  void unwatch_socket(transport::Socket& socket);
  // For sockets that are not transport::Sockets, by Socket::handle().
  void watch_handle(void* handle, Callback on_ready);
  void unwatch_handle(void* handle);

  TimerId call_at(MonoTime when, Callback callback);
  TimerId call_after(Duration delay, Callback callback);
  void cancel(TimerId id);  // has no effect if the timer has run

  // From now on these signals arrive only here (by signalfd). They are blocked in this thread and
  // in those it starts later.
  [[nodiscard]] Status watch_signals(std::initializer_list<int> signals,
                                     std::function<void(int)> on_signal);

  // Calls `on_exit` once when process `pid` has ended (by pidfd). The caller still has to reap a
  // child; processes that are not children work, too. The error means that there is no such
  // process.
  [[nodiscard]] Status watch_process(pid_t pid, Callback on_exit);

  void at_turn_end(Callback callback);  // kept; runs in every turn

  void run();   // runs until stop()
  void stop();  // to be called from a callback
  void stop_from_any_thread();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt
