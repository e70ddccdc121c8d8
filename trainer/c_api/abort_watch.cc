#include "trainer/c_api/abort_watch.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace antdt::capi {
namespace {

std::atomic<pid_t> watched_process{0};  // 0: nothing is watched
std::atomic<int> told_to{-1};
std::atomic<std::int64_t> stay_ns{0};
struct sigaction before {};  // written before the handler is there

// Calls nothing that a handler must not call. The signal is blocked while it runs, so what it
// raises at its end comes afterwards, to whoever had it before.
void on_abort(int /*signal*/) {
  if (watched_process.load() == ::getpid()) {
    const char one = 1;
    [[maybe_unused]] const ssize_t written = ::write(told_to.load(), &one, 1);
    constexpr std::int64_t kSecond = 1'000'000'000;
    timespec left{stay_ns.load() / kSecond, stay_ns.load() % kSecond};
    while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  ::sigaction(SIGABRT, &before, nullptr);
  std::raise(SIGABRT);
}

}  // namespace

void watch_aborts(int fd, Duration stay) {
  told_to = fd;
  stay_ns = stay.count();
  if (watched_process.exchange(::getpid()) == ::getpid()) return;
  ::sigaction(SIGABRT, nullptr, &before);
  struct sigaction action {};
  action.sa_handler = on_abort;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGABRT, &action, nullptr);
}

void forget_aborts() { watched_process = 0; }

}  // namespace antdt::capi
