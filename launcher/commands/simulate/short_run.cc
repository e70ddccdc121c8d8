#include "launcher/commands/simulate/short_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>

#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/spawn.h"

namespace antdt::cli {
namespace {

constexpr std::size_t kLastBytes = 2000;  // of what the run printed, in an error

}  // namespace

Result<Aside> Aside::make(const std::string& name) {
  std::string path = std::filesystem::temp_directory_path() / (name + "-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("cannot make the directory {}", path));
  }
  return Aside(std::move(path));
}

Aside::~Aside() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<Command> Command::start(std::vector<std::string> arguments, const std::string& output) {
  const OwnedFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.get() < 0) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("cannot write {}", output));
  }
  Spawn what;
  what.program = "/proc/self/exe";
  what.arguments = std::move(arguments);
  what.standard_output = what.standard_error = file.get();
  ANTDT_TRY(const Spawned spawned, spawn(what));
  return Command(spawned.pid);
}

bool Command::ended() { return ended_ || wait(WNOHANG); }

void Command::await_end() {
  while (!ended_) wait(0);
}

bool Command::wait(int flags) {
  const pid_t found = ::waitpid(pid_, nullptr, flags);
  ended_ = found == pid_ || (found < 0 && errno != EINTR);
  return ended_;
}

std::string end_of_output(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return "";
  return text->size() <= kLastBytes ? *text : "..." + text->substr(text->size() - kLastBytes);
}

}  // namespace antdt::cli
