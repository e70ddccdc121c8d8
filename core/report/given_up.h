// RUN/given-up: why the private agent of a run gave its job daemon up, for people. The agent writes
// it (antdtd/agent/private_job.h), and removes it when it starts a job daemon again; so does a
// standby that goes on with the job. The commands of antdt show it.
#pragma once

#include <string>

namespace antdt {

[[nodiscard]] inline std::string given_up_file(const std::string& run_dir) {
  return run_dir + "/given-up";
}

}  // namespace antdt
