#include "launcher/commands/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace antdt::cli {
namespace {

// Only a pipe or a connection has a reader that may leave.
bool has_reader(int fd) {
  struct stat what {};
  return ::fstat(fd, &what) == 0 && (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode));
}

}  // namespace

int finish_output(int exit_code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if ((flushed && std::ferror(stdout) == 0) || has_reader(STDOUT_FILENO)) return exit_code;
  fmt::print(stderr, "antdt: not all output could be written{}{}\n", flushed ? "" : ": ",
             flushed ? "" : std::strerror(error));
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace antdt::cli
