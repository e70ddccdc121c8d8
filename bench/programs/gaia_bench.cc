// What Gaia and SkewScout are worth on MNIST with four domains: bytes, accuracy, time to accuracy.
// The domains are replicas in one process and in virtual time (bench/gaia/domains.h). Prints the
// tables of docs/results/gaia.md. The exit code is 1 if a goal is missed that can be judged from
// the tables:
//   alike:   at T0 = 0.01 at most 30% of the bytes, accuracy within 0.5 points of summed gradients
//   scout:   from T0 = 0.2, with labels divided, accuracy of the merged model at least 0.925; with
//            data alike at most 5% of the bytes
//
//   antdt-gaia-bench DIRECTORY [SEEDS, default 3] [TABLE, default all] [DECAY, default 0.6]
//
// DIRECTORY has MNIST's four files, unpacked. Tables: alike, divided, scout, time, filter (which
// needs no data: the speed of the significance filter relative to copying memory). The learning
// rate, and with it the threshold, is a tenth from the part DECAY of the steps on; 1: it stays.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/gaia/domains.h"
#include "bench/gaia/replica.h"
#include "trainer/sync/gaia/update.h"

namespace {

using namespace antdt;
using namespace antdt::bench::gaia;

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// The runs of one row, a seed each.
struct Row {
  std::vector<Outcome> runs;

  using Value = std::function<double(const Outcome&)>;
  [[nodiscard]] double mean(const Value& value) const {
    double sum = 0;
    for (const Outcome& run : runs) sum += value(run);
    return sum / static_cast<double>(runs.size());
  }
  // "mean (least–most)" in percent.
  [[nodiscard]] std::string spread(const Value& value, const char* format = "{:.2f}") const {
    std::vector<double> all;
    for (const Outcome& run : runs) all.push_back(100 * value(run));
    const auto [least, most] = std::ranges::minmax(all);
    const auto text = [&](double x) { return fmt::format(fmt::runtime(format), x); };
    return fmt::format("{} ({}–{})", text(100 * mean(value)), text(least), text(most));
  }
};

double merged(const Outcome& run) { return run.merged; }
double replicas(const Outcome& run) { return run.replicas; }
double bytes(const Outcome& run) { return run.bytes; }
double paper_bytes(const Outcome& run) { return run.paper_bytes; }

class Bench {
 public:
  Bench(const std::string& directory, int seeds, double decays_at)
      : images_(checked(read_images(directory))), seeds_(seeds), decays_at_(decays_at) {}

  Row gaia(Setting setting) const {
    return row(setting, [&](const Setting& s) { return checked(train_by_gaia(images_, s)); });
  }
  Row sums(Setting setting) const {
    return row(setting, [&](const Setting& s) { return checked(train_by_sums(images_, s)); });
  }

 private:
  Row row(Setting setting, const std::function<Outcome(const Setting&)>& train) const {
    Row row;
    setting.decays_at = decays_at_;
    for (int seed = 1; seed <= seeds_; ++seed) {
      setting.seed = static_cast<std::uint64_t>(seed);
      row.runs.push_back(train(setting));
    }
    return row;
  }
  Images images_;
  int seeds_;
  double decays_at_;
};

void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

bool goal(bool reached, const std::string& what) {
  print(fmt::format("goal {}: {}", reached ? "reached" : "MISSED", what));
  return reached;
}

// Accuracy and bytes as functions of the threshold. Returns the rows of summed gradients and of the
// first threshold.
std::pair<Row, Row> curve(const Bench& bench, Setting setting,
                          const std::vector<double>& thresholds) {
  print(
      "| threshold | bytes, % | bytes as in the paper, % | elements, % | merged model, % | "
      "replicas, % | worst replica, % |");
  print("|---|---|---|---|---|---|---|");
  const Row sums = bench.sums(setting);
  print(fmt::format("| gradients summed | 100 | 100 | 100 | {} | | |", sums.spread(merged)));
  Row first;
  for (const double threshold : thresholds) {
    setting.threshold = threshold;
    const Row row = bench.gaia(setting);
    if (threshold == thresholds.front()) first = row;
    print(fmt::format("| {} | {} | {} | {} | {} | {} | {} |", threshold, row.spread(bytes),
                      row.spread(paper_bytes),
                      row.spread([](const Outcome& r) { return r.elements; }), row.spread(merged),
                      row.spread(replicas),
                      row.spread([](const Outcome& r) { return r.worst_replica; })));
  }
  return {sums, first};
}

bool alike(const Bench& bench) {
  const auto [sums, row] = curve(bench, {}, {0.01, 0.05, 0.2, 0.0025, 0});
  const bool few = goal(row.mean(bytes) <= 0.3, "alike, at most 30% of the bytes");
  const double lost = sums.mean(merged) - std::min(row.mean(merged), row.mean(replicas));
  return goal(lost <= 0.005,
              fmt::format("alike, accuracy within 0.5 points: {:.2f} lost", 100 * lost)) &&
         few;
}

void divided(const Bench& bench) {
  Setting setting;
  setting.division = Division::kByLabel;
  (void)curve(bench, setting, {0.01, 0.05, 0.2, 0.1, 0.02, 0.0025, 0});
}

bool scout(const Bench& bench) {
  bool good = true;
  print(
      "| data | threshold | bytes with visits, % | merged model, % | replicas, % | thresholds of "
      "seed 1 |");
  print("|---|---|---|---|---|---|");
  for (const Division division : {Division::kByLabel, Division::kAlike}) {
    const char* data = division == Division::kAlike ? "alike" : "divided";
    Setting setting;
    setting.division = division;
    setting.threshold = 0.2;
    const Row fixed = bench.gaia(setting);
    print(fmt::format("| {} | 0.2 | {} | {} | {} | |", data, fixed.spread(bytes),
                      fixed.spread(merged), fixed.spread(replicas)));
    setting.scout.emplace();
    setting.scout->initial = 0.2;
    const Row row = bench.gaia(setting);
    std::string thresholds;
    for (const double t : row.runs.front().thresholds) thresholds += fmt::format("{:.3g} ", t);
    print(fmt::format("| {} | from 0.2 | {} | {} | {} | {}|", data, row.spread(bytes),
                      row.spread(merged), row.spread(replicas), thresholds));
    if (division == Division::kByLabel) {
      good &=
          goal(row.mean(merged) >= 0.925, "divided, accuracy of the merged model at least 0.925");
    } else {
      good &= goal(row.mean(bytes) <= 0.05, "alike, at most 5% of the bytes");
    }
  }
  return good;
}

// Time until a replica is right about 95% of the test images, over links of 100 Mbit/s and 50 ms.
void time_to_accuracy(const Bench& bench) {
  const Links links{12.5e6, 0.05};
  Setting setting;
  setting.links = links;
  setting.compute_s = 0.02;
  setting.target = 0.95;
  setting.steps = 1875;
  const Row sums = bench.sums(setting);
  const double steps = sums.mean([](const Outcome& r) { return r.steps_to_target.value_or(0); });
  const double dense = sums.runs.front().dense_bytes;
  const std::uint32_t n = setting.domains;
  print("| synchronisation | most ahead | KB a message | ms a step | steps | lag | seconds |");
  print("|---|---|---|---|---|---|---|");
  for (const bool ring : {true, false}) {
    const double exchange = ring ? ring_s(links, n, dense) : direct_s(links, n, dense);
    const double step_s = setting.compute_s + exchange;
    print(fmt::format("| all-reduce, {} | | {:.0f} | {:.0f} | {:.0f} | 0 | {:.1f} |",
                      ring ? "a ring" : "each to all", dense / 1e3, 1e3 * step_s, steps,
                      step_s * steps));
  }
  for (const double threshold : {0.01, 0.05}) {
    for (const std::uint64_t ahead : {0U, 1U, 3U, 8U}) {
      setting.threshold = threshold;
      setting.most_ahead = ahead;
      const Row row = bench.gaia(setting);
      const auto reached = std::ranges::count_if(
          row.runs, [](const Outcome& r) { return r.steps_to_target.has_value(); });
      if (reached != static_cast<std::ptrdiff_t>(row.runs.size())) {
        print(fmt::format(
            "| Gaia, T0 = {} | {} | | | not reached in {} steps by {} of {} seeds | | |", threshold,
            ahead, setting.steps, row.runs.size() - static_cast<std::size_t>(reached),
            row.runs.size()));
        continue;
      }
      const double took = row.mean([](const Outcome& r) { return *r.steps_to_target; });
      const double seconds = row.mean([](const Outcome& r) { return r.seconds; });
      print(fmt::format(
          "| Gaia, T0 = {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.1f} | {:.1f} |", threshold, ahead,
          row.mean([](const Outcome& r) { return r.message_bytes; }) / 1e3, 1e3 * seconds / took,
          took, row.mean([](const Outcome& r) { return r.mean_lag; }), seconds));
    }
  }
}

// Of this thread: what others do on the machine counts less than on a clock.
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Bytes read a second by the filter (two floats an element), median of rounds, and those of memcpy,
// read and written.
void filter() {
  constexpr std::size_t kElements = 64 << 20;
  constexpr int kRounds = 9;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> noise(1 << 20);
  for (float& x : noise) x = normal(random);
  std::vector<float> before(kElements), values(kElements), known(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    before[i] = noise[i % noise.size()];
    values[i] = before[i] * (1 + 0.01F * noise[(i * 7 + 3) % noise.size()]);
  }
  sync::gaia::Encoder encoder;
  std::vector<std::byte> out;
  const auto timed = [](const std::function<void()>& prepare, const std::function<void()>& run) {
    std::vector<double> all;
    for (int round = 0; round < kRounds; ++round) {
      prepare();
      const double begin = cpu_s();
      run();
      all.push_back(cpu_s() - begin);
    }
    std::ranges::sort(all);
    return all[all.size() / 2];
  };
  const double bytes = 8.0 * kElements;
  const double copy = timed([] {}, [&] { std::memcpy(known.data(), before.data(), bytes / 2); });
  print("| significant, % | GB/s | of memcpy's, % | read and applied, GB/s of the message |");
  print("|---|---|---|---|");
  print(fmt::format("| memcpy | {:.1f} | 100 | |", bytes / copy / 1e9));
  for (const float threshold : {0.1F, 0.035F, 0.0258F, 0.0165F, 0.01F, 0.0F}) {
    std::uint64_t significant = 0;
    const double took =
        timed([&] { std::memcpy(known.data(), before.data(), bytes / 2); },
              [&] {
                significant = encoder.encode({0, 1, false}, 0, values, known, threshold, out);
              });
    const double applied = timed([] {},
                                 [&] {
                                   const auto message =
                                       checked(sync::gaia::read_message(out, 0, kElements));
                                   apply(message, sync::gaia::Direction::kAdd, known, known);
                                 });
    print(fmt::format("| {:.2f} | {:.1f} | {:.0f} | {:.1f} |",
                      100 * static_cast<double>(significant) / kElements, bytes / took / 1e9,
                      100 * copy / took, static_cast<double>(out.size()) / applied / 1e9));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string directory = argc > 1 ? argv[1] : "";
  const std::string table = argc > 3 ? argv[3] : "all";
  if (directory.empty()) throw std::runtime_error("which directory has MNIST's four files?");
  compute_with_one_thread();
  const bool all = table == "all";
  if (all || table == "filter") filter();
  if (table == "filter") return 0;
  const Bench bench(directory, argc > 2 ? std::stoi(argv[2]) : 3,
                    argc > 4 ? std::stod(argv[4]) : 0.6);
  bool good = true;
  if (all || table == "alike") good &= alike(bench);
  if (all || table == "divided") divided(bench);
  if (all || table == "scout") good &= scout(bench);
  if (all || table == "time") time_to_accuracy(bench);
  return good ? 0 : 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "antdt-gaia-bench: {}\n", e.what());
  return 2;
}
