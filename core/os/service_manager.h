// The service manager (systemd) that started a daemon, to which the daemon says how it is, by the
// protocol of sd_notify(3): datagrams of lines NAME=VALUE to the socket that NOTIFY_SOCKET names.
// The protocol is promised to stay, and this is all of it that a daemon needs, so libsystemd is not
// linked.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"

namespace antdt {

// What the manager asks of a daemon.
struct NotifySettings {
  std::string socket;                // a path, or "@NAME" for an abstract socket; "": nobody asks
  std::optional<Duration> watchdog;  // the manager wants to hear WATCHDOG=1 within this time
};
// From the values of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, null where one is not set. A
// watchdog of another process than `own`, and one that is no number of microseconds, is left out.
[[nodiscard]] NotifySettings notify_settings(const char* socket, const char* watchdog_usec,
                                             const char* watchdog_pid, pid_t own);
// The same from this process's environment, from which the three are removed: no child process is
// to speak for this one. To be called while there is one thread.
[[nodiscard]] NotifySettings take_notify_settings();

class ServiceManager {
 public:
  [[nodiscard]] static Result<ServiceManager> connect(const std::string& socket);

  // Sends one or more lines, such as "READY=1\nSTATUS=…"; may be called by any thread. Never waits:
  // a manager that does not read is an error.
  [[nodiscard]] Status tell(std::string_view lines) const;

 private:
  explicit ServiceManager(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
};

}  // namespace antdt
