// How far apart replicas of a real network stay by how they are mixed, and what they learn. The
// engines of all members are in this process, which averages their parameters itself, so nothing is
// sent: models, gradients, optimizers and groups are those of jobs. Handwritten digits (MNIST),
// a multilayer perceptron, SGD; each member has the same share of each batch. The goal: DS-Sync
// keeps 16 replicas within 1e-2 of their mean and no fixed groups do, and the loss of the last
// records is within 2 % of that of summed gradients.
//
//   antdt-replicas-bench DIR [SEEDS, default 3] [MEMBERS, default 16] [RATE, default 0.05]
//
// DIR: where train-images-idx3-ubyte and train-labels-idx1-ubyte are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/synchronisation/descent.h"
#include "core/os/fs.h"
#include "trainer/collective/prepare.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/torch_engine.h"

namespace {

using namespace antdt;
using namespace antdt::trainer;
using bench::synchronisation::Mixing;

constexpr std::size_t kPixels = 784;
constexpr std::size_t kShare = 32;  // records of a member in a step
constexpr std::size_t kRecords = 60'000;

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

struct Digits {
  std::string images, labels;  // one byte each
  explicit Digits(const std::string& directory)
      : images(checked(read_file(directory + "/train-images-idx3-ubyte")).substr(16)),
        labels(checked(read_file(directory + "/train-labels-idx1-ubyte")).substr(8)) {
    if (images.size() != kRecords * kPixels || labels.size() != kRecords) {
      throw std::runtime_error(directory + " has no 60,000 images of 28 x 28 with labels");
    }
  }
  [[nodiscard]] data::Examples batch(const std::uint32_t* first, std::size_t count) const {
    data::Examples out;
    out.count = count;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t p = 0; p < kPixels; ++p) {
        const auto byte = static_cast<unsigned char>(images[first[i] * kPixels + p]);
        out.dense.push_back(static_cast<float>(byte) / 255);
      }
      out.labels.push_back(static_cast<float>(labels[first[i]]));
    }
    return out;
  }
};

std::unique_ptr<Collective> alone() {
  const auto builder =
      checked(prepare_collective(0, 1, {.hostname = "127.0.0.1", .interface = ""}));
  const std::vector<MemberAddress> addresses{builder->address()};
  return checked(builder->connect(addresses, {crypto::Secret().derive("bench"), "bench", {}}));
}

std::span<float> parameters_of(Engine& engine) {
  const auto part = engine.state_parts()[0];
  return {reinterpret_cast<float*>(part.data()), part.size() / sizeof(float)};
}

struct Learned {
  double consensus_error = 0;  // mean of the last tenth of the steps
  double loss = 0;             // of the records of the last tenth of the steps
};

class Members {
 public:
  Members(std::uint32_t count, std::uint64_t seed, double rate) : alone_(alone()) {
    TrainerConfig config = checked(parse_trainer_config("{}"));
    config.seed = seed;
    config.model = "mlp";
    config.hidden = {128};
    config.optimizer = "sgd";
    config.learning_rate = rate;
    data::DataShape shape;
    shape.dense_width = kPixels;
    shape.classes = 10;
    shape.channels = 1;
    shape.height = shape.width = 28;
    for (std::uint32_t i = 0; i < count; ++i) {
      engines_.push_back(checked(make_torch_engine(config, shape)));
    }
  }

  void mix(const sync::Groups& groups) {
    for (const auto& group : groups) {
      const std::vector<float> mean = mean_of(group);
      for (const std::uint32_t rank : group) {
        std::ranges::copy(mean, parameters_of(*engines_[rank]).begin());
      }
    }
  }
  // The root of the mean square of the distances from the mean, divided by its length.
  [[nodiscard]] double consensus_error() {
    std::vector<std::uint32_t> all(engines_.size());
    std::iota(all.begin(), all.end(), 0U);
    const std::vector<float> mean = mean_of(all);
    double squares = 0, length = 0;
    for (const float x : mean) length += double{x} * double{x};
    for (const auto& engine : engines_) {
      const auto own = parameters_of(*engine);
      for (std::size_t k = 0; k < mean.size(); ++k) {
        squares += std::pow(double{own[k]} - double{mean[k]}, 2);
      }
    }
    return std::sqrt(squares / static_cast<double>(engines_.size()) / length);
  }
  // Each member's own update; the mean loss of their records.
  [[nodiscard]] double train_each(const std::vector<data::Examples>& shares) {
    double loss = 0;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      engines_[i]->begin_local_step(*alone_);
      loss += checked(engines_[i]->compute(shares[i], true)).loss;
      engines_[i]->apply(kShare);
    }
    return loss / static_cast<double>(shares.size() * kShare);
  }
  // One update with the sum of all gradients, by one engine.
  [[nodiscard]] double train_together(const std::vector<data::Examples>& shares) {
    Engine& engine = *engines_.front();
    engine.begin_step(*alone_);
    double loss = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      loss += checked(engine.compute(shares[i], i + 1 == shares.size())).loss;
    }
    if (!engine.finish_reduction()) throw std::runtime_error("nothing was summed");
    engine.apply(static_cast<double>(shares.size() * kShare));
    return loss / static_cast<double>(shares.size() * kShare);
  }

 private:
  [[nodiscard]] std::vector<float> mean_of(const std::vector<std::uint32_t>& ranks) {
    std::vector<float> mean(parameters_of(*engines_.front()).size());
    for (const std::uint32_t rank : ranks) {
      const auto own = parameters_of(*engines_[rank]);
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += own[k];
    }
    for (float& x : mean) x /= static_cast<float>(ranks.size());
    return mean;
  }

  const std::unique_ptr<Collective> alone_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

Learned train(const Digits& digits, std::uint32_t count, std::uint64_t seed, double rate,
              Mixing mixing) {
  Members members(mixing == Mixing::kAll ? 1 : count, seed, rate);
  const sync::ds_sync::GroupSchedule schedule(count, seed);
  std::vector<std::uint32_t> order(kRecords);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(order, random);
  const std::size_t steps = kRecords / (count * kShare);
  const std::size_t last = std::max<std::size_t>(steps / 10, 1);
  Learned learned;
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<data::Examples> shares;
    for (std::uint32_t i = 0; i < count; ++i) {
      shares.push_back(digits.batch(&order[(step * count + i) * kShare], kShare));
    }
    const bool counts = step + last >= steps;
    double loss = 0;
    if (mixing == Mixing::kAll) {
      loss = members.train_together(shares);
    } else {
      members.mix(groups_of(mixing, schedule, step));
      if (counts) learned.consensus_error += members.consensus_error() / double(last);
      loss = members.train_each(shares);
    }
    if (counts) learned.loss += loss / double(last);
  }
  return learned;
}

double number(int argc, char** argv, int place, double otherwise) {
  return argc > place ? std::atof(argv[place]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "antdt-replicas-bench DIR [SEEDS] [MEMBERS] [RATE]\n");
    return 2;
  }
  set_compute_threads(PoolThreads{});
  const Digits digits(argv[1]);
  const int seeds = std::max(static_cast<int>(number(argc, argv, 2, 3)), 1);
  const auto members = static_cast<std::uint32_t>(number(argc, argv, 3, 16));
  const double rate = number(argc, argv, 4, 0.05);
  std::vector<double> summed;  // losses, by seed
  bool reached = true;
  fmt::print(
      "| mixing | seed | consensus error | loss of the last records | from summed gradients |\n"
      "|---|---|---|---|---|\n");
  for (const Mixing mixing : {Mixing::kAll, Mixing::kDsSync, Mixing::kFixedGroups, Mixing::kNone}) {
    for (int seed = 1; seed <= seeds; ++seed) {
      const Learned learned =
          train(digits, members, static_cast<std::uint64_t>(seed), rate, mixing);
      if (mixing == Mixing::kAll) summed.push_back(learned.loss);
      const double off = learned.loss / summed[static_cast<std::size_t>(seed - 1)] - 1;
      fmt::print("| {} | {} | {:.4f} | {:.4f} | {:+.2f} % |\n",
                 mixing == Mixing::kAll ? "summed gradients" : name_of(mixing), seed,
                 learned.consensus_error, learned.loss, 100 * off);
      std::fflush(stdout);
      if (mixing == Mixing::kDsSync) {
        reached = reached && learned.consensus_error < 1e-2 && std::abs(off) < 0.02;
      }
      if (mixing == Mixing::kFixedGroups) reached = reached && learned.consensus_error > 1e-2;
    }
  }
  return reached ? 0 : 1;
}
