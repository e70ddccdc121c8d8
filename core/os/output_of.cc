#include "core/os/output_of.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/os/pipe.h"
#include "core/os/spawn.h"

namespace antdt {
namespace {

// Until its end, the time `until`, or a failure: false for the latter two. Nothing is kept of what
// is too much.
bool read_to_end(int fd, MonoTime until, std::size_t most_bytes, std::string& text) {
  std::array<char, 4096> bytes{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock().now());
    pollfd item{fd, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&item, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t size = ::read(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    if (size == 0) return true;
    if (text.size() < most_bytes) text.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command, Duration patience,
                              std::size_t most_bytes) {
  Pipe output;
  if (!output.open()) return fail_errno(ErrorKind::kIo, errno, "making a pipe");
  Spawn what;
  what.program = command.front();
  what.arguments.assign(command.begin() + 1, command.end());
  what.standard_output = output.write.get();
  what.standard_error = output.write.get();
  what.dies_with_us = true;
  ANTDT_TRY(const Spawned started, spawn(what));
  output.write.close();
  std::string text;
  const bool ended =
      read_to_end(output.read.get(), SteadyClock().now() + patience, most_bytes, text);
  if (!ended) ::kill(started.pid, SIGKILL);
  int status = 0;
  while (::waitpid(started.pid, &status, 0) < 0 && errno == EINTR) {
  }
  while (text.ends_with('\n')) text.pop_back();
  if (!ended) {
    return fail(ErrorKind::kUnreachable, "{} did not end within {:.0f} s", command.front(),
                to_seconds(patience));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return fail(ErrorKind::kUnreachable, "{} failed: {}", command.front(),
              text.empty() ? "it says nothing" : text);
}

}  // namespace antdt
