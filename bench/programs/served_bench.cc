// What models learn under parameter servers, with replicas of the dense parameters and without
// (trainer.sync), in one process and in virtual time (bench/replicas/served.h).
//
//   antdt-served-bench DIRECTORY [--sync NAME] [--model NAME] [--optimizer NAME] [--lr X]
//                      [--alpha X] [--eta X] [--every K] [--atomic] [--hop X] [--apart X]
//                      [--rows-rate X] [--dense-rate X] [--workers N] [--batch N] [--epochs N]
//                      [--seeds N]
//
// Prints, for each epoch, log loss and AUC of the model on the records of eval.tsv, mean of the
// seeds, least and most in brackets, and in the last column, with shadow-easgd, the log loss of the
// mean of the replicas.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "bench/replicas/served.h"
#include "trainer/torch/threads/compute_threads.h"

namespace {

using namespace antdt;
using namespace antdt::bench::replicas;

using Metric = std::optional<double> shard_server::EvalMetrics::*;

std::string spread(const std::vector<std::vector<AfterEpoch>>& runs, std::size_t epoch,
                   shard_server::EvalMetrics AfterEpoch::*of, Metric metric) {
  double sum = 0;
  std::vector<double> all;
  for (const auto& run : runs) {
    const std::optional<double> value = run[epoch].*of.*metric;
    if (!value) return "–";
    all.push_back(*value);
    sum += *value;
  }
  const auto [least, most] = std::ranges::minmax(all);
  return fmt::format("{:.4f} ({:.4f}–{:.4f})", sum / static_cast<double>(all.size()), least, most);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What models learn under parameter servers.");
  std::string directory, sync = "shadow-easgd";
  std::uint32_t buckets = 65536;
  std::uint64_t seeds = 3;
  Setting setting;
  setting.config = trainer::parse_trainer_config("{}").value();
  trainer::TrainerConfig& config = setting.config;
  config.model = "deepfm";
  config.optimizer = "adam";
  config.learning_rate = 1e-3;
  app.add_option("directory", directory)->required();
  app.add_option("--sync", sync)
      ->check(CLI::IsMember({"ps-bsp", "ps-asp", "shadow-easgd", "shadow-ma", "shadow-bmuf"}));
  app.add_option("--model", config.model);
  app.add_option("--optimizer", config.optimizer);
  app.add_option("--lr", config.learning_rate);
  app.add_option("--alpha", config.shadow_alpha, "0: one by the number of workers");
  app.add_option("--eta", config.shadow_eta, "with shadow-bmuf");
  app.add_option("--every", setting.every);
  app.add_flag("--atomic", setting.atomic);
  app.add_option("--hop", setting.hop);
  app.add_option("--apart", setting.apart);
  app.add_option("--rows-rate", setting.rows_rate);
  app.add_option("--dense-rate", setting.dense_rate);
  app.add_option("--workers", setting.workers)->check(CLI::PositiveNumber);
  app.add_option("--batch", setting.batch)->check(CLI::PositiveNumber);
  app.add_option("--epochs", setting.epochs)->check(CLI::PositiveNumber);
  app.add_option("--seeds", seeds)->check(CLI::PositiveNumber);
  app.add_option("--buckets", buckets);
  CLI11_PARSE(app, argc, argv);
  trainer::set_compute_threads({});
  config.sync = *by_name<SyncStrategy>(sync);
  if (config.shadow_alpha == 0) {
    config.shadow_alpha = config.sync == SyncStrategy::kShadowEasgd ? 1.0 / setting.workers : 0.5;
  }
  const auto clicks = read_clicks_of(directory, buckets);
  if (!clicks) {
    fmt::print(stderr, "{}\n", clicks.error().message);
    return 2;
  }
  std::vector<std::vector<AfterEpoch>> runs;
  for (config.seed = 1; config.seed <= seeds; ++config.seed) {
    auto run = train_served(*clicks, setting);
    if (!run) {
      fmt::print(stderr, "{}\n", run.error().message);
      return 2;
    }
    runs.push_back(std::move(*run));
  }
  for (std::size_t e = 0; e < setting.epochs; ++e) {
    fmt::print("| {} | {} | {} | {} |\n", e + 1,
               spread(runs, e, &AfterEpoch::centre, &shard_server::EvalMetrics::log_loss),
               spread(runs, e, &AfterEpoch::centre, &shard_server::EvalMetrics::auc),
               spread(runs, e, &AfterEpoch::replicas, &shard_server::EvalMetrics::log_loss));
  }
  return 0;
}
