#include "core/os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace antdt {
namespace {

std::optional<std::uint64_t> whole_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [parsed, error] = std::from_chars(text, end, number);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return number;
}

}  // namespace

NotifySettings notify_settings(const char* socket, const char* watchdog_usec,
                               const char* watchdog_pid, pid_t own) {
  NotifySettings settings;
  if (socket == nullptr || *socket == '\0') return settings;
  settings.socket = socket;
  const bool is_ours =
      watchdog_pid == nullptr || whole_number(watchdog_pid) == static_cast<std::uint64_t>(own);
  const auto microseconds = whole_number(watchdog_usec);
  constexpr std::uint64_t kLongest = 1'000'000ULL * 3600 * 24 * 365;  // what a Duration holds
  if (is_ours && microseconds && *microseconds > 0 && *microseconds <= kLongest) {
    settings.watchdog = std::chrono::microseconds(*microseconds);
  }
  return settings;
}

NotifySettings take_notify_settings() {
  NotifySettings settings =
      notify_settings(std::getenv("NOTIFY_SOCKET"), std::getenv("WATCHDOG_USEC"),
                      std::getenv("WATCHDOG_PID"), getpid());
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  return settings;
}

Result<ServiceManager> ServiceManager::connect(const std::string& socket) {
  const std::string what = "telling the service manager at NOTIFY_SOCKET=" + socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!socket.starts_with('/') && !socket.starts_with('@')) {
    return fail(ErrorKind::kUsage, "{}: only paths and abstract sockets (@NAME) are known", what);
  }
  if (socket.size() >= sizeof(address.sun_path)) {
    return fail(ErrorKind::kUsage, "{}: the name is too long for a socket", what);
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const bool is_abstract = socket.front() == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  // An abstract name ends with its length, a path with a zero.
  const std::size_t size = offsetof(sockaddr_un, sun_path) + socket.size() + (is_abstract ? 0 : 1);
  OwnedFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open() || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                                 static_cast<socklen_t>(size)) != 0) {
    return fail_errno(ErrorKind::kIo, errno, what);
  }
  return ServiceManager(std::move(fd));
}

Status ServiceManager::tell(std::string_view lines) const {
  const ssize_t sent = ::send(fd_.get(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(lines.size())) return {};
  return fail_errno(ErrorKind::kIo, errno, "telling the service manager");
}

}  // namespace antdt
