#include "core/os/process.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "core/os/fs.h"

namespace antdt {

namespace {

struct ProcessState {
  char state = '?';
  std::uint64_t start_time = 0;
};

// The limit of open files before it was raised. As the limit itself, it belongs to the process; any
// function of it may start a program.
std::optional<rlimit> open_files_before_raise;

tl::unexpected<Error> no_such_process(pid_t pid) {
  return fail(ErrorKind::kUnreachable, "there is no process {}", pid);
}

Result<ProcessState> read_process_state(pid_t pid) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return no_such_process(pid);
  // The second field is the program's name in parentheses, which may contain any characters.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return no_such_process(pid);
  ProcessState result;
  result.state = (*stat)[name_end + 2];
  std::size_t at = name_end + 2;
  for (int field = 3; field < 22; ++field) at = stat->find(' ', at) + 1;
  const char* end = stat->data() + stat->size();
  if (std::from_chars(stat->data() + at, end, result.start_time).ec != std::errc()) {
    return fail(ErrorKind::kInternal, "/proc/{}/stat has no start time", pid);
  }
  return result;
}

}  // namespace

void ignore_sigpipe() { std::signal(SIGPIPE, SIG_IGN); }

// A system that does not grant the limit leaves the process with what it has.
void raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) open_files_before_raise = limit;
}

void restore_open_files_limit_for_child() {
  if (open_files_before_raise) setrlimit(RLIMIT_NOFILE, &*open_files_before_raise);
}

void reset_signals_for_child() {
  for (int signal = 1; signal < 32; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) std::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void keep_freed_memory() {
  constexpr int kKept = 64 << 20;
  // the largest threshold that glibc accepts; larger buffers are mapped separately
  constexpr int kOfItsOwn = 32 << 20;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kOfItsOwn);
}

Result<std::uint64_t> process_start_time(pid_t pid) {
  ANTDT_TRY(const ProcessState state, read_process_state(pid));
  return state.start_time;
}

bool process_alive(pid_t pid, std::uint64_t start_time) {
  const Result<ProcessState> state = read_process_state(pid);
  return state && state->start_time == start_time && state->state != 'Z' && state->state != 'X';
}

bool process_waits_for_device(pid_t pid) {
  const auto now = read_process_state(pid);
  return now && now->state == 'D';
}

Result<int> open_pidfd(pid_t pid) {
  // The system sets close-on-exec on it.
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0 && errno == ESRCH) return no_such_process(pid);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, fmt::format("opening process {}", pid));
  return static_cast<int>(fd);
}

Status signal_process(pid_t pid, std::uint64_t start_time, int signal) {
  ANTDT_TRY(const int fd, open_pidfd(pid));
  // The descriptor refers to one process. If that process has the given start time, it is the right
  // one, whatever becomes of the pid.
  const bool same = process_alive(pid, start_time);
  const long rc = same ? syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) : -1;
  const int error = same ? errno : ESRCH;
  close(fd);
  if (rc == 0) return {};
  if (error == ESRCH) return no_such_process(pid);
  return fail_errno(ErrorKind::kIo, error, fmt::format("sending signal {} to {}", signal, pid));
}

}  // namespace antdt
