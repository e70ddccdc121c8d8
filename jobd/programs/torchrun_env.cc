#include "jobd/programs/torchrun_env.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace antdt::jobd {

std::vector<std::vector<wire::EnvVar>> torchrun_environment(
    const TorchrunJob& job, const std::vector<ctl::PlacedWorker>& workers) {
  std::vector<std::size_t> by_rank(workers.size());
  std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
  std::ranges::sort(by_rank, {}, [&](std::size_t i) {
    return std::tuple(workers[i].host_order, workers[i].worker);
  });
  std::map<std::uint32_t, std::uint32_t> local_size;
  for (const ctl::PlacedWorker& w : workers) ++local_size[w.host_order];
  std::map<std::uint32_t, std::uint32_t> group_rank;  // hosts are numbered without gaps
  for (const auto& [order, size] : local_size) {
    group_rank.emplace(order, static_cast<std::uint32_t>(group_rank.size()));
  }

  std::vector<std::vector<wire::EnvVar>> environments(workers.size());
  std::map<std::uint32_t, std::uint32_t> next_local;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const ctl::PlacedWorker& w = workers[by_rank[rank]];
    const std::uint32_t local_rank = next_local[w.host_order]++;
    const auto number = [](auto n) { return std::to_string(n); };
    environments[by_rank[rank]] = {
        {"RANK", number(rank)},
        {"WORLD_SIZE", number(workers.size())},
        {"LOCAL_RANK", number(local_rank)},
        {"LOCAL_WORLD_SIZE", number(local_size[w.host_order])},
        {"GROUP_RANK", number(group_rank[w.host_order])},
        {"GROUP_WORLD_SIZE", number(local_size.size())},
        {"ROLE_NAME", job.role},
        {"ROLE_RANK", number(rank)},
        {"ROLE_WORLD_SIZE", number(workers.size())},
        {"MASTER_ADDR", job.master_addr},
        {"MASTER_PORT", number(job.master_port)},
        {"TORCHELASTIC_RUN_ID", job.job},
        {"TORCHELASTIC_RESTART_COUNT", number(job.restarts)},
        {"TORCHELASTIC_MAX_RESTARTS", number(job.max_restarts)},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_ERROR_FILE",
         fmt::format("{}/logs/{}.error.json", job.run_dir, to_string(w.worker))},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
    };
  }
  return environments;
}

void set_local_rank(const std::vector<wire::EnvVar>& environment, wire::StartProcess& start) {
  for (const wire::EnvVar& variable : environment) {
    const auto number = [&] { return static_cast<std::uint32_t>(std::stoul(variable.value)); };
    if (variable.name == "LOCAL_RANK") start.local_rank = number();
    if (variable.name == "LOCAL_WORLD_SIZE") start.local_size = number();
  }
}

}  // namespace antdt::jobd
