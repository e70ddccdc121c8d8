#include "launcher/commands/run/fetch_back.h"

#include "core/clock.h"
#include "core/loop.h"
#include "jobd/disk/run_copies.h"
#include "launcher/config/cluster.h"

namespace antdt::cli {
namespace {

// How long an agent may take for its first message; a user waits for it.
constexpr Duration kHostAnswers = std::chrono::seconds(5);
// How long threads may take to end after their work is done.
constexpr Duration kThreadsEnd = std::chrono::seconds(5);

}  // namespace

Result<FetchedBack> fetch_back(const std::string& run_dir, const launcher::JobConfig& config,
                               const std::string& newest,
                               const std::function<void(const std::string&)>& say) {
  FetchedBack back;
  if (config.cluster.hosts.empty()) return back;
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  transport::Context context;
  const SteadyClock clock;
  EventLoop loop(clock);
  const auto note = [&](const std::string& kind, const std::string& text) {
    kind == "copy-failed" ? back.troubles.push_back(text) : say(text);
  };
  jobd::RunCopies copies(
      loop, clock, {run_dir, config.job.id, config.checkpoint.copies, kHostAnswers}, {note, {}});
  for (std::size_t i = 0; i < config.cluster.hosts.size(); ++i) {
    copies.add(context, {config.cluster.hosts[i], keys.job, keys.agents[i].z85});
  }
  for (const std::string& host : config.cluster.hosts) copies.host_up(host);
  copies.find(newest, [&](const jobd::RunCopies::Found& found) {
    back.fetched = found.fetched;
    back.unfetched = found.unfetched;
    loop.stop();
  });
  loop.run();
  if (!copies.end(kThreadsEnd)) {
    return fail(ErrorKind::kIo, "the disk of {} does not answer", run_dir);
  }
  jobd::RunCopies::remove_probes(run_dir);
  return back;
}

}  // namespace antdt::cli
