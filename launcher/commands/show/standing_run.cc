#include "launcher/commands/show/standing_run.h"

#include <filesystem>

#include "core/os/fs.h"
#include "launcher/commands/show/runs.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/paths.h"

namespace antdt::cli {

Result<RunningJob> reach_without_files(const std::string& name, const Error& trouble) {
  const std::filesystem::path meant = std::filesystem::path(launcher::absolute_path(name, "."));
  for (const KnownAgent& agent : known_agents()) {
    const bool same = std::filesystem::path(agent.run_dir).lexically_normal() ==
                      (meant / "").parent_path().lexically_normal();
    if (!same && agent.job != name) continue;
    if (!FileLock::owner(launcher::private_agent_lock(agent.socket_dir))) continue;  // it is gone
    launcher::RunControl control;
    control.job = agent.job;
    control.jobd_socket = agent.socket_dir + "/jobd.sock";
    auto context = std::make_unique<transport::Context>();
    ANTDT_TRY(launcher::JobLink link, launcher::JobLink::open(*context, control.jobd_socket));
    return RunningJob{RunningJob::Place::kHere, agent.run_dir, std::move(control),
                      std::move(context), std::move(link)};
  }
  return fail(trouble.kind, "no job daemon of the run in {} is found on this machine, and {}", name,
              trouble.message);
}

}  // namespace antdt::cli
