// How far apart replicas of a real network stay by how they are mixed, and what they learn, beside
// summed gradients. Engines, optimizers, groups and the collective are those of jobs, all in this
// process (bench/replicas/members.h); each member has the same share of each batch.
//
//   antdt-replicas-bench TASK DIRECTORY [--seeds 3] [--ways WAY,...] [--members N] [--batch N]
//                        [--epochs N] [--optimizer NAME] [--lr X] [--momentum X]
//
// TASK and DIRECTORY: bench/replicas/task.h. Ways: all-reduce (always), ds-sync, fixed-groups,
// none; what was tried for Adam, in the groups of ds-sync: parameters, moments, changed-rows,
// scaled-rows. The number of members must divide the batch. The exit code is 2 if an argument is
// refused.
//
// The goal of ds-sync, on average over seeds: a consensus error below 1e-2 in the last tenth of the
// steps; with mlp a loss of the last epoch within 2 % of all-reduce's, else an accuracy or AUC that
// is at most twice the standard error of the difference below. The exit code is 1 if it is missed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "bench/gaia/images.h"
#include "bench/replicas/members.h"
#include "bench/replicas/ways.h"
#include "bench/synchronisation/descent.h"
#include "trainer/torch/threads/compute_threads.h"

namespace {

using namespace antdt;
using namespace antdt::bench::replicas;
using bench::synchronisation::Mixing;

struct Learned {
  std::vector<double> errors;  // the consensus error after each fifth of the steps
  double error = 0;            // its mean in the last tenth
  double loss = 0;             // of the records of the last epoch
  shard_server::EvalMetrics test;
};

std::vector<data::Examples> shares_of(const Task& task, std::span<const std::uint32_t> records) {
  std::vector<data::Examples> shares(task.members);
  const std::size_t each = records.size() / task.members;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    bench::gaia::take_rows(task.train, records.subspan(i * each, each), shares[i]);
  }
  return shares;
}

Result<Learned> train(const Task& task, std::uint64_t seed, const Way& way) {
  ANTDT_TRY(const auto members, Members::make(task, seed, way.rule));
  const sync::ds_sync::GroupSchedule schedule(task.members, seed);
  std::vector<std::uint32_t> order(task.train.count);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  const std::size_t of_epoch = order.size() / task.batch;
  const std::size_t steps = of_epoch * task.epochs;
  const std::size_t fifth = std::max<std::size_t>(steps / 5, 1);
  const std::size_t last = std::max<std::size_t>(steps / 10, 1);
  Learned learned;
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % of_epoch == 0) std::ranges::shuffle(order, random);
    const auto shares =
        shares_of(task, std::span(order).subspan(step % of_epoch * task.batch, task.batch));
    double loss = 0;
    if (way.mixing == Mixing::kAll) {
      ANTDT_TRY(loss, members->train_together(shares));
    } else {
      ANTDT_RETURN_IF_ERROR(members->mix(groups_of(way.mixing, schedule, step)));
      const bool at_fifth = (step + 1) % fifth == 0, at_end = step + last >= steps;
      const double error = at_fifth || at_end ? members->consensus_error() : 0;
      if (at_fifth) learned.errors.push_back(error);
      if (at_end) learned.error += error / static_cast<double>(last);
      ANTDT_TRY(loss, members->train_each(shares));
    }
    if (step + of_epoch >= steps) learned.loss += loss / static_cast<double>(of_epoch);
  }
  ANTDT_TRY(learned.test, members->evaluate());
  return learned;
}

using Runs = std::vector<Learned>;  // by seed

double mean_of(const Runs& runs, double (*value)(const Learned&)) {
  double sum = 0;
  for (const Learned& run : runs) sum += value(run);
  return sum / static_cast<double>(runs.size());
}
double loss_of(const Learned& run) { return run.loss; }
double error_of(const Learned& run) { return run.error; }
double auc_of(const Learned& run) { return run.test.auc.value_or(0); }
double accuracy_of(const Learned& run) { return run.test.accuracy.value_or(0); }
double log_loss_of(const Learned& run) { return run.test.log_loss.value_or(0); }

std::string spread(const Runs& runs, double (*value)(const Learned&)) {
  std::vector<double> all;
  for (const Learned& run : runs) all.push_back(value(run));
  const auto [least, most] = std::ranges::minmax(all);
  return fmt::format("{:.4f} ({:.4f}–{:.4f})", mean_of(runs, value), least, most);
}

void tell(const Way& way, const Runs& runs, const Runs& summed) {
  std::string errors;
  for (std::size_t i = 0; i < runs[0].errors.size(); ++i) {
    double sum = 0;
    for (const Learned& run : runs) sum += run.errors[i];
    errors += fmt::format("{}{:.4f}", i == 0 ? "" : ", ", sum / static_cast<double>(runs.size()));
  }
  fmt::print("| {} | {} | {} | {} | {:+.2f} % | {} | {} | {} |\n", way.name, errors,
             spread(runs, error_of), spread(runs, loss_of),
             100 * (mean_of(runs, loss_of) / mean_of(summed, loss_of) - 1),
             spread(runs, log_loss_of), spread(runs, accuracy_of),
             runs[0].test.auc ? spread(runs, auc_of) : "–");
  std::fflush(stdout);
}

double variance(const Runs& runs, double (*value)(const Learned&)) {
  double sum = 0;
  for (const Learned& run : runs) sum += std::pow(value(run) - mean_of(runs, value), 2);
  return runs.size() > 1 ? sum / static_cast<double>(runs.size() - 1) : 0;
}

bool reached(const Task& task, const Runs& runs, const Runs& summed) {
  if (mean_of(runs, error_of) >= 1e-2) return false;
  if (task.name == "mlp") {
    return std::abs(mean_of(runs, loss_of) / mean_of(summed, loss_of) - 1) < 0.02;
  }
  const auto value = runs[0].test.auc ? auc_of : accuracy_of;
  const double error = std::sqrt((variance(runs, value) + variance(summed, value)) /
                                 static_cast<double>(runs.size()));
  return mean_of(runs, value) >= mean_of(summed, value) - 2 * error;
}

// Whether the goal was reached.
Result<bool> measure(const Task& task, std::uint64_t seeds, const std::vector<Way>& ways) {
  fmt::print(
      "{}: {} members, {} epochs of steps of {} records, {} at {}, momentum {}\n\n"
      "| way | consensus error after each fifth | in the last tenth | loss of the last epoch | of "
      "all-reduce's | log loss of others | accuracy | AUC |\n|---|---|---|---|---|---|---|---|\n",
      task.name, task.members, task.epochs, task.batch, task.config.optimizer,
      task.config.learning_rate, task.config.momentum);
  Runs summed;
  bool good = true;
  for (const Way& way : ways) {
    const bool is_sum = way.mixing == Mixing::kAll;
    Runs runs;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      ANTDT_TRY(Learned learned, train(task, seed, way));
      runs.push_back(std::move(learned));
    }
    if (is_sum) summed = runs;
    tell(way, runs, summed);
    if (way.name == "ds-sync") good = reached(task, runs, summed);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How far apart replicas of a real network stay, and what they learn.");
  std::string name, directory, optimizer;
  std::uint64_t seeds = 3;
  std::vector<std::string> names{"ds-sync", "fixed-groups", "none"};
  std::uint32_t members = 0, batch = 0, epochs = 0;
  double rate = 0, momentum = 0;
  app.add_option("task", name)->required();
  app.add_option("directory", directory)->required();
  app.add_option("--seeds", seeds)->check(CLI::PositiveNumber);
  app.add_option("--ways", names)->delimiter(',');
  app.add_option("--members", members);
  app.add_option("--batch", batch);
  app.add_option("--epochs", epochs);
  app.add_option("--optimizer", optimizer);
  app.add_option("--lr", rate);
  app.add_option("--momentum", momentum);
  CLI11_PARSE(app, argc, argv);
  trainer::set_compute_threads({});
  const auto ways = ways_of(names);
  if (!ways) {
    fmt::print(stderr, "{}\n", ways.error().message);
    return 2;
  }
  auto task = read_task(name, directory);
  if (!task) {
    fmt::print(stderr, "{}\n", task.error().message);
    return 2;
  }
  if (members > 0) task->members = members;
  if (batch > 0) task->batch = batch;
  if (epochs > 0) task->epochs = epochs;
  if (!optimizer.empty()) task->config.optimizer = optimizer;
  if (rate > 0) task->config.learning_rate = rate;
  task->config.momentum = momentum;
  if (const Status divides = check_division(*task); !divides) {
    fmt::print(stderr, "{}\n", divides.error().message);
    return 2;
  }
  const auto good = measure(*task, seeds, *ways);
  if (!good) {
    fmt::print(stderr, "{}\n", good.error().message);
    return 2;
  }
  return *good ? 0 : 1;
}
