// Starts a job: a private agent, which starts the job daemon.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/start/run_directory.h"

namespace antdt::launcher {

struct Programs {
  std::string agent;       // antdtd
  std::string job_daemon;  // antdt-jobd
};
// Looks beside the running program, then in PATH.
[[nodiscard]] Result<Programs> find_programs();

struct StartOptions {
  Programs programs;
  std::string socket_root;  // a private directory, in which a subdirectory is made
  std::string run_dir;
  std::string state_dir;
  std::string job;
  // A command that starts another one in its own place, as in a unit of systemd; empty: none.
  std::vector<std::string> place = {};
  Duration orphan_timeout = std::chrono::seconds(60);  // [failure] orphan_timeout, for the workers
  Duration deadline = std::chrono::seconds(20);  // how long each of the two may take to answer
};

// Starts a private agent in a session of its own, which outlives this process and ends with the
// job; then starts the job daemon through it. Returns when the job daemon answers and control.json
// is written. If it fails, it ends what was started, and the error names the log that tells more.
[[nodiscard]] Result<RunControl> start_job(transport::Context& context,
                                           const StartOptions& options);

// The directory of a job's sockets, below the user's private directory.
[[nodiscard]] std::string socket_directory(const std::string& socket_root, const std::string& job);

// The last lines of a file, for messages; "" if there are none.
[[nodiscard]] std::string last_lines(const std::string& path, std::size_t lines);

}  // namespace antdt::launcher
