#include "bench/replicas/members.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "trainer/collective/prepare.h"
#include "trainer/torch/torch_engine.h"

namespace antdt::bench::replicas {

Result<std::unique_ptr<Members>> Members::make(const Task& task, std::uint64_t seed, Rule rule) {
  trainer::TrainerConfig config = task.config;
  config.seed = seed;
  // A rule may change rows of which an engine knows nothing.
  if (rule != Rule::kEngine) config.embedding_gradients = "dense";
  std::unique_ptr<Members> members(new Members(task, rule));
  ANTDT_TRY(members->table_, table_of(config, task.shape));
  for (std::uint32_t rank = 0; rank < task.members; ++rank) {
    ANTDT_TRY(auto engine, trainer::make_torch_engine(config, task.shape));
    members->engines_.push_back(std::move(engine));
  }
  ANTDT_RETURN_IF_ERROR(members->connect());
  members->mixed_.resize(task.members);
  return members;
}

Status Members::connect() {
  trainer::CollectiveOptions options{.hostname = "127.0.0.1", .interface = ""};
  options.groups = true;
  ANTDT_TRY(const auto builder, trainer::prepare_collective(0, 1, options));
  const trainer::MemberAddress own = builder->address();
  ANTDT_TRY(alone_, builder->connect(std::span(&own, 1), {}));
  std::vector<std::unique_ptr<trainer::CollectiveBuilder>> builders;
  std::vector<trainer::MemberAddress> addresses;
  for (std::uint32_t rank = 0; rank < task_.members; ++rank) {
    ANTDT_TRY(auto made, trainer::prepare_collective(rank, task_.members, options));
    addresses.push_back(made->address());
    builders.push_back(std::move(made));
  }
  collectives_.resize(task_.members);
  groups_.resize(task_.members);
  const trainer::GroupKey key{crypto::Secret().derive("bench"), "bench", {}};
  return in_all([&](std::uint32_t rank) -> Status {
    ANTDT_TRY(collectives_[rank], builders[rank]->connect(addresses, key));
    return {};
  });
}

Status Members::in_all(const std::function<Status(std::uint32_t rank)>& body) {
  std::vector<Status> ended(task_.members);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < task_.members; ++rank) {
    threads.emplace_back([&, rank] { ended[rank] = body(rank); });
  }
  for (auto& thread : threads) thread.join();
  for (const Status& status : ended) ANTDT_RETURN_IF_ERROR(status);
  return {};
}

std::vector<Arrays> Members::arrays_of(const std::vector<std::uint32_t>& ranks) {
  std::vector<Arrays> all;
  for (const std::uint32_t rank : ranks) {
    Arrays arrays;
    for (const auto part : engines_[rank]->state_parts()) {
      arrays.emplace_back(reinterpret_cast<float*>(part.data()), part.size() / sizeof(float));
    }
    arrays.pop_back();  // how many steps the optimizer has made
    all.push_back(std::move(arrays));
  }
  return all;
}

Status Members::mix(const sync::Groups& groups) {
  if (rule_ == Rule::kEngine) {
    std::vector<const std::vector<std::uint32_t>*> group_of(task_.members);
    for (const auto& group : groups) {
      for (const std::uint32_t rank : group) group_of[rank] = &group;
    }
    return in_all([&](std::uint32_t rank) -> Status {
      if (group_of[rank] == nullptr) return {};
      ANTDT_TRY(trainer::Collective * group,
                groups_[rank].of(*collectives_[rank], *group_of[rank]));
      return engines_[rank]->mix(*group);
    });
  }
  for (const auto& group : groups) {
    std::vector<std::span<const float>> mixed;
    for (const std::uint32_t rank : group) mixed.emplace_back(mixed_[rank]);
    const std::vector<Arrays> arrays = arrays_of(group);
    if (mixed[0].empty()) continue;  // before the first step all are equal
    mix_by(rule_, table_, arrays, mixed);
  }
  for (std::uint32_t rank = 0; rank < task_.members; ++rank) {
    const auto now = arrays_of({rank})[0][0];
    mixed_[rank].assign(now.begin(), now.end());
  }
  return {};
}

Result<double> Members::train_each(std::span<const data::Examples> shares) {
  double loss = 0;
  for (std::uint32_t rank = 0; rank < task_.members; ++rank) {
    trainer::Engine& engine = *engines_[rank];
    engine.begin_local_step(rule_ == Rule::kEngine ? *collectives_[rank] : *alone_);
    ANTDT_TRY(const trainer::BatchSums sums, engine.compute(shares[rank], true));
    loss += sums.loss;
    engine.apply(static_cast<double>(task_.batch) / task_.members);
    if (rule_ != Rule::kScaledRows) continue;
    scale_rows(table_, mixed_[rank], static_cast<float>(task_.members), arrays_of({rank})[0][0]);
  }
  return loss / task_.batch;
}

// One engine is enough, as all would be alike.
Result<double> Members::train_together(std::span<const data::Examples> shares) {
  trainer::Engine& engine = *engines_[0];
  engine.begin_step(*alone_);
  double loss = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    ANTDT_TRY(const trainer::BatchSums sums, engine.compute(shares[i], i + 1 == shares.size()));
    loss += sums.loss;
  }
  ANTDT_RETURN_IF_ERROR(engine.finish_reduction());
  engine.apply(task_.batch);
  for (std::uint32_t rank = 1; rank < task_.members; ++rank) {
    std::ranges::copy(arrays_of({0})[0][0], arrays_of({rank})[0][0].begin());
  }
  return loss / task_.batch;
}

std::vector<float> Members::mean_of_all() {
  std::vector<std::uint32_t> ranks(task_.members);
  std::iota(ranks.begin(), ranks.end(), 0U);
  const std::vector<Arrays> all = arrays_of(ranks);
  std::vector<float> mean(all[0][0].size());
  for (std::size_t k = 0; k < mean.size(); ++k) {
    double sum = 0;
    for (const Arrays& member : all) sum += member[0][k];
    mean[k] = static_cast<float>(sum / task_.members);
  }
  return mean;
}

double Members::consensus_error() {
  const std::vector<float> mean = mean_of_all();
  double squares = 0, length = 0;
  for (const float x : mean) length += double{x} * double{x};
  for (std::uint32_t rank = 0; rank < task_.members; ++rank) {
    const auto own = arrays_of({rank})[0][0];
    for (std::size_t k = 0; k < mean.size(); ++k) {
      const double off = double{own[k]} - double{mean[k]};
      squares += off * off;
    }
  }
  return std::sqrt(squares / task_.members / length);
}

Result<shard_server::EvalMetrics> Members::evaluate() {
  constexpr std::size_t kAtOnce = 500;
  const std::span<float> own = arrays_of({0})[0][0];
  const std::vector<float> kept(own.begin(), own.end());
  std::ranges::copy(mean_of_all(), own.begin());
  wire::EvalPartial sum;
  for (std::size_t from = 0; from < task_.test.count; from += kAtOnce) {
    data::Examples some;
    some.append(task_.test, from, std::min(from + kAtOnce, task_.test.count));
    ANTDT_TRY(const wire::EvalPartial part, engines_[0]->evaluate(some));
    shard_server::merge(sum, part);
  }
  std::ranges::copy(kept, own.begin());
  return shard_server::metrics(sum);
}

}  // namespace antdt::bench::replicas
