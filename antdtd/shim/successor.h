// Starts a private agent again when it is gone. The shims of its job do this, since nothing else of
// the job may be left.
//
//   up ── its lock is free ──> gone ── patience over ──> started ── lock taken ──> up
//   │                                                       └─ after a pause ──> started again
//   └─ has claimed nothing for `hung_after` ──> killed ──> gone
//
// The shim of the job daemon has no patience and watches the agent's process. The shims of workers
// step in if that shim is gone, too. Several may start an agent at the same time: the lock of the
// state directory lets one begin, and the others end at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace antdt::antdtd {

struct SuccessorOptions {
  std::vector<std::string> command;  // command of the agent; empty: nobody starts it again
  std::string lock;                  // <state>/lock; beside it is <state>/environment
  std::string log;                   // where its output goes
  Duration patience{};
  Duration hung_after{};  // 0: never
};

// Decides what to do about the agent. A value, no I/O.
class AgentWatch {
 public:
  enum class Wish { kNothing, kStart, kKill };
  AgentWatch(Duration patience, Duration hung_after)
      : patience_(patience), hung_after_(hung_after) {}

  // `alive`: some process holds the lock. `unclaimed`: how long ago the agent last touched our
  // claim file.
  [[nodiscard]] Wish look(bool alive, Duration unclaimed, MonoTime now);

  static constexpr Duration kShortestPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);

 private:
  Duration patience_;
  Duration hung_after_;
  std::optional<MonoTime> gone_since_;
  MonoTime next_try_{};  // an agent that was started needs a while to take the lock
  Duration pause_ = kShortestPause;
};

// Carries out what an AgentWatch decides.
class AgentSuccessor {
 public:
  explicit AgentSuccessor(SuccessorOptions options);
  ~AgentSuccessor();
  AgentSuccessor(const AgentSuccessor&) = delete;
  AgentSuccessor& operator=(const AgentSuccessor&) = delete;

  void tend(Duration unclaimed, MonoTime now);
  // Readable once the agent ends; -1 while no agent is watched, or if `patience` makes it useless.
  [[nodiscard]] int agent_fd() const { return agent_fd_; }

 private:
  void watch(std::optional<pid_t> owner);
  void start();
  void tell(const std::string& why) const;
  SuccessorOptions options_;
  AgentWatch watch_;
  int agent_fd_ = -1;
  pid_t watched_ = 0;
  int vain_starts_ = 0;  // without an environment file, one after the other
};

// The file with an agent's own environment, for its successors. A worker's shim has the worker's
// marks in its environment, and a process with those marks is killed with the worker.
[[nodiscard]] std::string environment_file(const std::string& lock);
[[nodiscard]] std::string format_environment(const std::vector<std::string>& environment);
[[nodiscard]] std::vector<std::string> parse_environment(std::string_view text);

// Starts `command` with exactly `environment`, not as a child of this process: in a session of its
// own, with its output appended to `log`, and no signal blocked or ignored. Returns when it is
// executed, or says why it could not be.
[[nodiscard]] Status start_as_orphan(const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment,
                                     const std::string& log);

}  // namespace antdt::antdtd
