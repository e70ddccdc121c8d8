// EventLoop without message sockets (loop_sockets.cc). It does not need ZeroMQ, so the library for
// worker programs does not need it either.
//
// All file descriptors are in one epoll set, so a turn costs the same with ten or a thousand of
// them.
#include "core/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/os/process.h"
#include "core/transport/loop_state.h"

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

}  // namespace

EventLoop::State::State(const Clock& loop_clock)
    : clock(loop_clock),
      epoll(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      timer(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      stop_event(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

EventLoop::EventLoop(const Clock& clock) : state_(std::make_unique<State>(clock)) {
  state_->add_watch(state_->timer.get(), EPOLLIN, [state = state_.get()] {
    drain_counter(state->timer.get());
    state->armed_for = MonoTime::max();
  });
  state_->add_watch(state_->stop_event.get(), EPOLLIN, [state = state_.get()] {
    drain_counter(state->stop_event.get());
    state->stopping = true;
  });
}

EventLoop::~EventLoop() = default;

MonoTime EventLoop::now() const { return state_->clock.now(); }

// --------------------------------------------------------------- descriptors

std::uint64_t EventLoop::State::add_watch(int fd, std::uint32_t events, Callback on_ready) {
  remove_watch(fd);  // a watch of a descriptor that was closed
  const std::uint64_t number = next_watch++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  const int rc = epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  ANTDT_CHECK(rc == 0, "watching descriptor {}: {}", fd, std::strerror(errno));
  watches[number] = std::make_shared<LoopWatch>(LoopWatch{std::move(on_ready)});
  watch_of_fd[fd] = number;
  return number;
}

void EventLoop::State::remove_watch(int fd) {
  const auto found = watch_of_fd.find(fd);
  if (found == watch_of_fd.end()) return;
  // This fails if the descriptor was closed before, which ended the watch, too.
  epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
  const auto watch = watches.find(found->second);
  watch->second->active = false;
  watches.erase(watch);
  watch_of_fd.erase(found);
}

void EventLoop::watch_fd(int fd, Callback on_ready) {
  state_->add_watch(fd, EPOLLIN, std::move(on_ready));
}

void EventLoop::watch_writable_fd(int fd, Callback on_ready) {
  state_->add_watch(fd, EPOLLOUT, std::move(on_ready));
}

void EventLoop::unwatch_fd(int fd) { state_->remove_watch(fd); }

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
  state->add_watch(fd, EPOLLIN, [state, fd, number, on_exit = std::move(on_exit)] {
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

// The descriptor is only set if something is due earlier than what it is set for. A cancelled timer
// costs one idle turn, but no system call each time.
void EventLoop::State::arm_timer() {
  if (timers.empty() || timers.begin()->first.first >= armed_for) return;
  armed_for = timers.begin()->first.first;
  const Duration delay = std::max(armed_for - clock.now(), Duration(1));
  itimerspec spec{};
  spec.it_value = to_timespec(delay);
  const int rc = timerfd_settime(timer.get(), 0, &spec, nullptr);
  ANTDT_CHECK(rc == 0, "timerfd_settime: {}", std::strerror(errno));
}

// Timers that the callbacks add run in the next turn, even if they are due, so a timer that sets
// itself for now cannot starve sockets.
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
  if (sockets.empty()) return collect_descriptors(-1);
  if (wait_with_sockets(*this)) collect_descriptors(0);
}

void EventLoop::State::collect_descriptors(int timeout_ms) {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    // This is a copy, because epoll_event is packed and nothing may refer into it.
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    const auto found = watches.find(id);
    if (found != watches.end()) ready.push_back(found->second);
  }
}

void EventLoop::State::turn() {
  arm_timer();
  wait();
  for (const std::shared_ptr<LoopWatch>& watch : ready) {
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
