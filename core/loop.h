// The one loop of a daemon: sockets, file descriptors, child exits, signals
// and timers, all on the thread that calls run().
//
// A turn waits until something is ready, runs the callbacks of everything that
// is, then the turn-end callbacks: a journal commits there once for all that
// the turn did, and sends replies after it. Nothing here is thread-safe but
// stop_from_any_thread().
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

  // Calls `on_ready` in every turn in which `fd` is readable (or broken).
  // unwatch_fd may be called from any callback, its own too.
  void watch_fd(int fd, Callback on_ready);
  void unwatch_fd(int fd);

  // The same for a message socket. `on_ready` reads what it wants; what it
  // leaves is offered again in the next turn. Unwatch before it is destroyed.
  void watch_socket(transport::Socket& socket, Callback on_ready);
  void unwatch_socket(transport::Socket& socket);
  // By Socket::handle(), for sockets that are not transport::Sockets.
  void watch_handle(void* handle, Callback on_ready);
  void unwatch_handle(void* handle);

  TimerId call_at(MonoTime when, Callback callback);
  TimerId call_after(Duration delay, Callback callback);
  void cancel(TimerId id);  // of a timer that has run: nothing happens

  // From now on these signals arrive here (signalfd) and nowhere else; they are
  // blocked in this thread and those it starts later.
  [[nodiscard]] Status watch_signals(std::initializer_list<int> signals,
                                     std::function<void(int)> on_signal);

  // Calls `on_exit` once when process `pid` has ended (pidfd). A child is still
  // to be reaped by the caller; a process that is not ours works too. An error
  // means that there is no such process any more.
  [[nodiscard]] Status watch_process(pid_t pid, Callback on_exit);

  void at_turn_end(Callback callback);  // kept; runs in every turn

  void run();   // until stop()
  void stop();  // from a callback
  void stop_from_any_thread();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antdt
