// EventLoop lives in this folder because it waits with zmq_poll.
//
// File descriptors are gathered in one epoll set, which is one item of the
// poll set beside the message sockets: a turn costs the same with ten or a
// thousand descriptors. Message sockets must be in the poll set themselves,
// since what ZeroMQ offers as their descriptor is edge-triggered.
#include "core/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"
#include "core/transport/socket.h"

namespace antdt {

namespace {

using Callback = EventLoop::Callback;

int checked(int fd, const char* call) {
  ANTDT_CHECK(fd >= 0, "{}: {}", call, std::strerror(errno));
  return fd;
}

void drain_counter(int fd) {
  std::uint64_t count = 0;
  while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

timespec to_timespec(Duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  return {.tv_sec = seconds.count(), .tv_nsec = (d - seconds).count()};
}

// Something that can be ready. Shared, so that a callback may end its own watch
// while it runs.
struct Watch {
  Callback on_ready;
  bool active = true;
};

}  // namespace

struct EventLoop::State {
  explicit State(const Clock& loop_clock) : clock(loop_clock) {}

  const Clock& clock;
  OwnedFd epoll{checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  OwnedFd timer{
      checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")};
  OwnedFd stop_event{checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  std::vector<OwnedFd> signal_fds;
  std::map<std::uint64_t, OwnedFd> pidfds;  // by number of their watch
  bool stopping = false;

  // A descriptor's number is used again by the system, a watch's is not: what
  // epoll reported of a watch that has ended meanwhile is told by its number.
  std::uint64_t next_watch = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watch>> watches;
  std::unordered_map<int, std::uint64_t> watch_of_fd;

  // poll_items[0] is the epoll set, poll_items[i + 1] is of sockets[i].
  struct WatchedSocket {
    void* handle;
    std::shared_ptr<Watch> watch;
  };
  std::vector<WatchedSocket> sockets;
  std::vector<zmq_pollitem_t> poll_items;
  bool poll_items_stale = true;
  std::vector<std::shared_ptr<Watch>> ready;  // of this turn

  std::uint64_t next_timer = 1;
  std::map<std::pair<MonoTime, std::uint64_t>, Callback> timers;
  std::unordered_map<std::uint64_t, MonoTime> time_of_timer;
  MonoTime armed_for = MonoTime::max();
  std::deque<Callback> turn_end;  // a deque: callbacks may add to it while it runs

  std::uint64_t add_watch(int fd, Callback on_ready);
  void remove_watch(int fd);
  void arm_timer();
  void wait();
  void collect_descriptors();
  void run_due_timers();
  void turn();
};

EventLoop::EventLoop(const Clock& clock) : state_(std::make_unique<State>(clock)) {
  state_->add_watch(state_->timer.get(), [state = state_.get()] {
    drain_counter(state->timer.get());
    state->armed_for = MonoTime::max();
  });
  state_->add_watch(state_->stop_event.get(), [state = state_.get()] {
    drain_counter(state->stop_event.get());
    state->stopping = true;
  });
}

EventLoop::~EventLoop() = default;

MonoTime EventLoop::now() const { return state_->clock.now(); }

// --------------------------------------------------------------- descriptors

std::uint64_t EventLoop::State::add_watch(int fd, Callback on_ready) {
  remove_watch(fd);  // left behind by a descriptor that was closed
  const std::uint64_t number = next_watch++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  const int rc = epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  ANTDT_CHECK(rc == 0, "watching descriptor {}: {}", fd, std::strerror(errno));
  watches[number] = std::make_shared<Watch>(Watch{std::move(on_ready)});
  watch_of_fd[fd] = number;
  return number;
}

void EventLoop::State::remove_watch(int fd) {
  const auto found = watch_of_fd.find(fd);
  if (found == watch_of_fd.end()) return;
  // Fails where the descriptor was closed before, which ended the watch too.
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
  const auto watch = watches.find(found->second);
  watch->second->active = false;
  watches.erase(watch);
  watch_of_fd.erase(found);
}

void EventLoop::watch_fd(int fd, Callback on_ready) { state_->add_watch(fd, std::move(on_ready)); }

void EventLoop::unwatch_fd(int fd) { state_->remove_watch(fd); }

void EventLoop::watch_handle(void* handle, Callback on_ready) {
  unwatch_handle(handle);
  state_->sockets.push_back({handle, std::make_shared<Watch>(Watch{std::move(on_ready)})});
  state_->poll_items_stale = true;
}

void EventLoop::unwatch_handle(void* handle) {
  std::erase_if(state_->sockets, [&](const State::WatchedSocket& watched) {
    if (watched.handle != handle) return false;
    watched.watch->active = false;
    return true;
  });
  state_->poll_items_stale = true;
}

void EventLoop::watch_socket(transport::Socket& socket, Callback on_ready) {
  watch_handle(socket.handle(), std::move(on_ready));
}

void EventLoop::unwatch_socket(transport::Socket& socket) { unwatch_handle(socket.handle()); }

Status EventLoop::watch_signals(std::initializer_list<int> signals,
                                std::function<void(int)> on_signal) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return fail_errno(ErrorKind::kInternal, error, "blocking signals to receive them in the loop");
  }
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "making a signalfd");
  state_->signal_fds.emplace_back(fd);
  watch_fd(fd, [fd, on_signal = std::move(on_signal)] {
    signalfd_siginfo info{};
    while (read(fd, &info, sizeof(info)) == sizeof(info)) {
      on_signal(static_cast<int>(info.ssi_signo));
    }
  });
  return {};
}

Status EventLoop::watch_process(pid_t pid, Callback on_exit) {
  ANTDT_TRY(const int fd, open_pidfd(pid));
  State* state = state_.get();
  const std::uint64_t number = state->next_watch;
  state->add_watch(fd, [state, fd, number, on_exit = std::move(on_exit)] {
    state->remove_watch(fd);
    state->pidfds.erase(number);
    on_exit();
  });
  state->pidfds.emplace(number, fd);
  return {};
}

// -------------------------------------------------------------------- timers

TimerId EventLoop::call_at(MonoTime when, Callback callback) {
  const TimerId id{state_->next_timer++};
  state_->timers.emplace(std::pair(when, id.value), std::move(callback));
  state_->time_of_timer.emplace(id.value, when);
  return id;
}

TimerId EventLoop::call_after(Duration delay, Callback callback) {
  const MonoTime start = now();
  const bool never = delay > MonoTime::max() - start;
  return call_at(never ? MonoTime::max() : start + delay, std::move(callback));
}

void EventLoop::cancel(TimerId id) {
  const auto found = state_->time_of_timer.find(id.value);
  if (found == state_->time_of_timer.end()) return;
  state_->timers.erase({found->second, id.value});
  state_->time_of_timer.erase(found);
}

// The descriptor is only set when something is due before what it is set for:
// a timer that was cancelled costs one idle turn, not a system call each time.
void EventLoop::State::arm_timer() {
  if (timers.empty() || timers.begin()->first.first >= armed_for) return;
  armed_for = timers.begin()->first.first;
  const Duration delay = std::max(armed_for - clock.now(), Duration(1));
  itimerspec spec{};
  spec.it_value = to_timespec(delay);
  const int rc = timerfd_settime(timer.get(), 0, &spec, nullptr);
  ANTDT_CHECK(rc == 0, "timerfd_settime: {}", std::strerror(errno));
}

// What the callbacks add is for the next turn, due or not: a timer that sets
// itself for now cannot keep sockets waiting.
void EventLoop::State::run_due_timers() {
  if (timers.empty()) return;
  const std::pair last{clock.now(), next_timer - 1};
  while (!timers.empty()) {
    const auto first = timers.begin();
    if (first->first.first > last.first) break;
    if (first->first.second > last.second) break;
    const Callback callback = std::move(first->second);
    time_of_timer.erase(first->first.second);
    timers.erase(first);
    callback();
  }
}

// --------------------------------------------------------------------- turns

void EventLoop::at_turn_end(Callback callback) { state_->turn_end.push_back(std::move(callback)); }

void EventLoop::State::wait() {
  if (poll_items_stale) {
    poll_items.assign(1, {nullptr, epoll.get(), ZMQ_POLLIN, 0});
    for (const WatchedSocket& socket : sockets) {
      poll_items.push_back({socket.handle, 0, ZMQ_POLLIN, 0});
    }
    poll_items_stale = false;
  }
  const int rc = zmq_poll(poll_items.data(), static_cast<int>(poll_items.size()), -1);
  if (rc < 0) {
    ANTDT_CHECK(errno == EINTR, "zmq_poll over {} sockets: {}", sockets.size(),
                zmq_strerror(errno));
    return;
  }
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (poll_items[i + 1].revents != 0) ready.push_back(sockets[i].watch);
  }
  if (poll_items[0].revents != 0) collect_descriptors();
}

void EventLoop::State::collect_descriptors() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    // Copied: epoll_event is packed, so nothing may refer into it.
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    const auto found = watches.find(id);
    if (found != watches.end()) ready.push_back(found->second);
  }
}

void EventLoop::State::turn() {
  arm_timer();
  wait();
  for (const std::shared_ptr<Watch>& watch : ready) {
    if (watch->active) watch->on_ready();
  }
  ready.clear();
  run_due_timers();
  for (std::size_t i = 0; i < turn_end.size(); ++i) turn_end[i]();
}

void EventLoop::run() {
  while (!state_->stopping) state_->turn();
  state_->stopping = false;
}

void EventLoop::stop() { state_->stopping = true; }

void EventLoop::stop_from_any_thread() {
  const std::uint64_t one = 1;
  while (write(state_->stop_event.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

}  // namespace antdt
