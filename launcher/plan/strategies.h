// The ways of synchronisation that a plan compares. A new one is an entry of the table here, and a
// formula in predict.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/sync_strategy.h"

namespace antdt::launcher::plan {

// trainer.sync of a job whose way `antdt run` plans before it starts it.
inline constexpr std::string_view kAutoSync = "auto";
// What trainer.sync may be.
[[nodiscard]] inline std::vector<std::string> values_of_sync() {
  constexpr auto kNames = names_of(SyncStrategy{});
  std::vector<std::string> values(kNames.begin(), kNames.end());
  values.emplace_back(kAutoSync);
  return values;
}

enum class Strategy : std::uint8_t {
  kAllReduce,        // with trainer.embedding_gradients as the job has it
  kAllReduceSparse,  // only the rows of the batch are summed and updated
  kServersBsp,
  kServersSsp,
  kServersAsp,
  kHybrid,  // dense gradients summed, rows on servers
  kDsSync,
  kGaia,
  kShadowEasgd,
  kShadowMa,
  kShadowBmuf,
};

struct StrategyEntry {
  Strategy strategy{};
  std::string_view name;  // for people and in JSON
  std::string_view sync;  // trainer.sync
  bool on_servers = false;
  bool sparse = false;  // trainer.embedding_gradients = "sparse"
  // Gradients are computed from parameters that lack some updates, so that training itself differs.
  bool stale = false;
  // Rows that are in no batch do not change, where plain all-reduce updates the whole table.
  bool changes_rows_of_batch_only = false;
  // It is compared, and recommended only if the job's own trainer.sync is this way: what a model
  // learns with it depends on more than a plan measures.
  bool only_if_asked = false;
  // It costs what the way before it in the table costs, and is not compared unless it is the job's
  // own.
  bool costs_as_before = false;
};

// In the order of preference among those that are equally fast: the first ones change least of what
// a job trains.
inline constexpr std::array<StrategyEntry, 11> kStrategies = {{
    {Strategy::kAllReduce, "allreduce", "allreduce"},
    {Strategy::kServersBsp, "ps-bsp", "ps-bsp", true, false, false, true},
    {Strategy::kAllReduceSparse, "allreduce sparse", "allreduce", false, true, false, true},
    {Strategy::kHybrid, "hybrid", "hybrid", true, false, false, true},
    {Strategy::kServersSsp, "ps-ssp", "ps-ssp", true, false, true, true},
    {Strategy::kServersAsp, "ps-asp", "ps-asp", true, false, true, true},
    {Strategy::kDsSync, "ds-sync", "ds-sync", false, false, true, false, true},
    {Strategy::kGaia, "gaia", "gaia", false, false, true, false, true},
    {Strategy::kShadowEasgd, "shadow-easgd", "shadow-easgd", true, false, true, true, true},
    {Strategy::kShadowMa, "shadow-ma", "shadow-ma", true, false, true, true, true, true},
    {Strategy::kShadowBmuf, "shadow-bmuf", "shadow-bmuf", true, false, true, true, true, true},
}};

[[nodiscard]] constexpr bool is_shadow(Strategy strategy) {
  return strategy == Strategy::kShadowEasgd || strategy == Strategy::kShadowMa ||
         strategy == Strategy::kShadowBmuf;
}

[[nodiscard]] constexpr const StrategyEntry& entry_of(Strategy strategy) {
  for (const StrategyEntry& entry : kStrategies) {
    if (entry.strategy == strategy) return entry;
  }
  return kStrategies.front();
}

}  // namespace antdt::launcher::plan
