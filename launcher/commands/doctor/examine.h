// Finds out what `antdt doctor` judges: asks this host, and the agents side by side.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/transport/socket.h"
#include "launcher/config/job_config.h"
#include "launcher/doctor/facts.h"

namespace antdt::cli {

struct Examination {
  std::vector<std::string> hosts;              // agents; empty: only this host is looked at
  std::string keys;                            // directory, as cluster.keys
  std::string ports;                           // as cluster.ports
  launcher::ClusterSection store;              // whose store is asked, if it has one
  std::string run_dir;                         // absolute
  std::vector<std::string> files;              // absolute paths that workers need
  std::uint32_t copies = 0;                    // checkpoint.copies; 0: no job
  bool journal = true;                         // run_dir has the journal, too
  Duration answers = std::chrono::seconds(3);  // how long an agent may take for each answer
  // False: agents are known to answer, no measurement is made, and of a host that takes longer than
  // `answers` nothing is said.
  bool whole = true;
};

// What a job would need, for the hosts of its [cluster].
[[nodiscard]] Examination examination_of(const launcher::JobConfig& config);

[[nodiscard]] launcher::Facts examine(transport::Context& context, const Examination& wanted);

}  // namespace antdt::cli
