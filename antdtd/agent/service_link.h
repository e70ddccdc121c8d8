// What an agent tells the service manager that started it (core/os/service_manager.h): that it is
// ready once it has adopted what ran, a line for `systemctl status`, that it lives, and that it
// ends.
//
// That it lives is said by the loop, at each half of the time within which the manager wants to
// hear it (WatchdogSec). A thread of its own would also say it of a loop that stands still, and a
// loop that stands still for long is to be killed: the next agent adopts its processes.
//
// There is one exception, a disk that does not answer. The loop reads and writes its state
// directory itself, and waits in the kernel meanwhile. To kill the agent for that would mend
// nothing: the kernel ends no process that waits in this way (state D), and the next agent would
// wait for the same disk, be killed, and so on, while nobody relays the messages of workers that
// train on. So if the loop is late, a deputy looks at its thread. If it waits for a device, the
// deputy says in its place that the agent lives, and tells people that it waits. For a loop that
// computes without end, waits for a lock, or was stopped by a signal it says nothing.
//
//   starting ──ready()──> serving ──stopping()──> stopping
//
// While the agent starts, it reads its state directory as well. The deputy then extends the time
// that the manager gives a start (TimeoutStartSec), by the same rule.
//
// What the kernel does not count as a device is a filesystem in user space (FUSE): an agent whose
// state directory is on one that stands still is killed.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/loop.h"
#include "core/os/service_manager.h"

namespace antdt::antdtd {

// Whether the deputy speaks for a loop that was silent for `silent`. `limit` is the time after
// which the manager acts. No later than 3/4 of it are over, the deputy has looked.
[[nodiscard]] bool speaks_for_loop(Duration silent, Duration limit, bool waits_for_device);

class ServiceLink {
 public:
  // To be constructed by the thread that will run the loop. Without a manager in `settings` nothing
  // here does anything; a manager that cannot be reached is named in the log.
  ServiceLink(const Clock& clock, const NotifySettings& settings);
  ~ServiceLink();
  ServiceLink(const ServiceLink&) = delete;
  ServiceLink& operator=(const ServiceLink&) = delete;

  // Running processes were adopted and the sockets are bound. From now on the loop says that it
  // lives, and `status` when it has changed.
  void ready(EventLoop& loop, std::function<std::string()> status);
  void stopping();

 private:
  enum class Phase { kStarting, kServing, kStopping };
  void say(const std::string& lines) const;
  void pulse(EventLoop& loop);
  void tell_status(EventLoop& loop);
  void watch();

  const Clock& clock_;
  std::optional<ServiceManager> manager_;
  std::optional<Duration> watchdog_;  // as the manager set it
  Duration limit_{};                  // of silence, also during the start
  pid_t loop_thread_;
  std::function<std::string()> status_;
  std::string told_;  // the last status

  std::mutex mutex_;  // guards what follows; held for no call that may wait
  std::condition_variable changed_;
  Phase phase_ = Phase::kStarting;
  MonoTime spoken_{};  // when the loop said last that it lives
  bool ending_ = false;
  bool waits_ = false;  // the status tells of a wait
  std::thread deputy_;  // the last member, because it uses all of the above
};

}  // namespace antdt::antdtd
