#include "launcher/commands/run/free_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "jobd/disk/host_files.h"
#include "launcher/config/cluster.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

// The agents have answered already; starting a file service takes some milliseconds.
constexpr Duration kAnswers = std::chrono::seconds(2);
constexpr std::string_view kOwner = ".job";  // core/checkpoint/run_owner.h

std::string counted(std::ptrdiff_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// What a host has in that directory: "2 checkpoints and 1 log"; "" if that is nothing, or unknown.
std::string files_on(transport::Context& context, const jobd::HostAddress& address,
                     const std::string& job, const std::string& run_dir) {
  jobd::HostFiles::Watch watch;
  watch.silence = watch.answers = kAnswers;
  auto files = jobd::HostFiles::open(context, address, job, run_dir, std::move(watch));
  if (!files) return "";
  const auto listed = files->ask<wire::FileListed>(wire::FileList{});
  if (!listed || (listed->checkpoints.empty() && listed->logs.empty())) return "";
  if (listed->checkpoints.size() == 1 && listed->checkpoints.front().name == kOwner) {
    return fmt::format("the mark of its job (checkpoints/{})", kOwner);
  }
  const auto whole = std::ranges::count(listed->checkpoints, true, &wire::FileEntry::whole);
  return fmt::format("{} and {}", counted(whole, "checkpoint"),
                     counted(std::ssize(listed->logs), "log"));
}

}  // namespace

Status check_paths_are_free(transport::Context& context, const launcher::JobConfig& config,
                            const launcher::RunOptions& options) {
  if (options.run_dir.empty() || config.cluster.hosts.empty()) return {};
  const std::string run_dir = launcher::absolute_path(options.run_dir, ".");
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  std::vector<std::future<std::string>> answers;
  for (std::size_t i = 0; i < config.cluster.hosts.size(); ++i) {
    jobd::HostAddress address{config.cluster.hosts[i], keys.job, keys.agents[i].z85};
    answers.push_back(std::async(std::launch::async, [&, address = std::move(address)] {
      return files_on(context, address, config.job.id, run_dir);
    }));
  }
  std::string taken;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string files = answers[i].get();
    if (!files.empty()) taken += fmt::format("\n  {}: {}", config.cluster.hosts[i], files);
  }
  if (taken.empty()) return {};
  return fail(ErrorKind::kUsage,
              "{} has files of an earlier run on hosts of this job, which would take its "
              "checkpoints for their own: choose another --run-dir, or remove that directory "
              "there:{}",
              run_dir, taken);
}

}  // namespace antdt::cli
