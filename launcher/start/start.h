// Starting a job: a private agent, and by it the job daemon.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "launcher/start/run_directory.h"

namespace antdt::launcher {

struct Programs {
  std::string agent;       // antdtd
  std::string job_daemon;  // antdt-jobd
};
// Beside the running program, then in PATH.
[[nodiscard]] Result<Programs> find_programs();

struct StartOptions {
  Programs programs;
  std::string socket_root;  // a private directory; a subdirectory of it is made
  std::string run_dir;
  std::string state_dir;
  std::string job;
  Duration orphan_timeout = std::chrono::seconds(60);  // [failure]: of the workers
  Duration deadline = std::chrono::seconds(20);        // for each of the two to answer
};

// Starts a private agent in a session of its own, which outlives this process
// and ends with the job; then the job daemon through it. Returns when the job
// daemon answers and control.json is written. An error ends what was started
// and says which log tells more.
[[nodiscard]] Result<RunControl> start_job(transport::Context& context,
                                           const StartOptions& options);

// The last lines of a file, for messages; "" if there are none.
[[nodiscard]] std::string last_lines(const std::string& path, std::size_t lines);

}  // namespace antdt::launcher
