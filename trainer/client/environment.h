// The worker's identity, which its agent put into the environment.
#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"

namespace antdt::client {

struct Environment {
  std::string socket;  // path of the agent's workers.sock
  std::string job;
  Member self;  // worker id and attempt
  std::string protocol = "antdt";

  // Reads ANTDT_SOCKET, ANTDT_JOB_ID, ANTDT_WORKER_ID, ANTDT_ATTEMPT and ANTDT_PROTOCOL. If a
  // variable is missing or malformed, the error (kUsage) names it and says how such a program is
  // started.
  [[nodiscard]] static Result<Environment> from_process();
};

}  // namespace antdt::client
