// Checkpoints that a run needs to go on and that its launching host lacks. Complete ones on other
// hosts of its cluster are found through their agents and fetched (docs/checkpoints-on-hosts.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/config/job_config.h"

namespace antdt::cli {

struct FetchedBack {
  bool fetched = false;               // this host now has a newer one
  std::vector<std::string> troubles;  // one sentence for each host that could not be asked or read
  std::vector<std::string> unfetched =
      {};  // one for each still newer one that could not be fetched
};

// Asks every host of the cluster, and fetches the newest complete checkpoint that is newer than
// `newest`, a directory of this host or "". Returns at once if there is no cluster. `say` is called
// before a checkpoint is fetched, which may take long.
[[nodiscard]] Result<FetchedBack> fetch_back(const std::string& run_dir,
                                             const launcher::JobConfig& config,
                                             const std::string& newest,
                                             const std::function<void(const std::string&)>& say);

}  // namespace antdt::cli
