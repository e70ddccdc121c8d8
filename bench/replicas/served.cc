#include "bench/replicas/served.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <random>
#include <tuple>

#include "bench/gaia/images.h"
#include "trainer/ps/rows/replica_mean.h"
#include "trainer/ps/rows/store.h"
#include "trainer/torch/ps_model.h"

namespace antdt::bench::replicas {
namespace {

using Values = std::vector<std::vector<float>>;

ps::TableSpec spec_of(const wire::PsTable& table, double rate) {
  ps::TableSpec spec;
  spec.name = table.name;
  spec.width = table.width;
  spec.rule.kind = ps::parse_update_rule(table.rule).value();
  spec.rule.learning_rate = static_cast<float>(table.learning_rate * rate);
  spec.rule.weight_decay = static_cast<float>(table.weight_decay);
  spec.init = table.init == "zero" ? ps::TableSpec::Init::kZero : ps::TableSpec::Init::kNormal;
  spec.init_scale = static_cast<float>(table.init_scale);
  return spec;
}

// What happens at which time; what is at the same time in the order in which it was said.
class Future {
 public:
  void at(double time, std::function<void()> what) {
    events_.push({time, ++number_, std::move(what)});
  }
  void run() {
    while (!events_.empty()) {
      const Event next = events_.top();
      events_.pop();
      now_ = next.time;
      next.what();
    }
  }
  [[nodiscard]] double now() const { return now_; }

 private:
  struct Event {
    double time = 0;
    std::uint64_t number = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  std::priority_queue<Event> events_;
  std::uint64_t number_ = 0;
  double now_ = 0;
};

class Served {
 public:
  Served(const Clicks& clicks, const Setting& setting) : clicks_(clicks), setting_(setting) {}

  Result<std::vector<AfterEpoch>> run() {
    for (std::uint32_t i = 0; i < setting_.workers; ++i) {
      ANTDT_TRY(workers_.emplace_back().model,
                trainer::make_torch_ps_model(setting_.config, clicks_.shape));
    }
    open();
    std::vector<std::uint32_t> order(clicks_.train.count);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(setting_.config.seed);
    std::vector<AfterEpoch> epochs;
    for (std::uint32_t e = 0; e < setting_.epochs; ++e) {
      std::ranges::shuffle(order, random);
      const bool steps = setting_.config.sync == SyncStrategy::kPsBsp;
      ANTDT_RETURN_IF_ERROR(steps ? in_step(order) : apart(order));
      ANTDT_TRY(epochs.emplace_back(), evaluate());
    }
    return epochs;
  }

 private:
  enum class At : std::uint8_t { kResting, kPulling, kHolding, kPushing };
  struct Ready {
    data::Examples batch;
    std::vector<ps::TableKeys> rows;
    Values values;
  };
  struct Worker {
    std::unique_ptr<trainer::PsModel> model;
    std::vector<data::Examples> batches;  // of this epoch
    std::size_t step = 0;                 // the one that is computed
    std::deque<Ready> ready;
    At at = At::kResting;
    std::uint32_t behind = 0;  // steps since the last exchange
    std::vector<float> centre;
    double free = 0;  // when the push before is staged
    double decided = 0;
  };

  void open() {
    std::vector<ps::TableSpec> specs;
    for (const wire::PsTable& table : workers_[0].model->tables()) {
      specs.push_back(spec_of(table, table.name == "dense" ? 1 : setting_.rows_rate));
    }
    store_.emplace(std::move(specs), setting_.config.seed);
    for (const ps::TableGradient& first : workers_[0].model->first_values()) {
      store_->put_new(first.table, first.gradient.keys, first.gradient.values);
    }
    for (Worker& w : workers_) {
      if (w.model->replica() == nullptr) continue;
      w.model->replica()->begin(centre_of(w));
      w.model->replica()->set_rate(setting_.dense_rate);
    }
  }

  std::vector<float> read(const ps::TableKeys& rows) {
    std::vector<float> values(rows.keys.size() * store_->tables()[rows.table].width);
    store_->read(rows.table, rows.keys, reinterpret_cast<char*>(values.data()));
    return values;
  }
  std::vector<float> centre_of(const Worker& w) { return read(w.model->replica()->centre_rows()); }

  void divide(const std::vector<std::uint32_t>& order) {
    const std::size_t each = setting_.batch / setting_.workers;
    for (Worker& w : workers_) w.batches.clear();
    for (std::size_t from = 0; from + setting_.batch <= order.size(); from += setting_.batch) {
      for (std::size_t i = 0; i < setting_.batch; ++i) {
        Worker& w = workers_[i / each];
        if (i % each == 0) w.batches.emplace_back();
        w.batches.back().append(clicks_.train, order[from + i], order[from + i] + 1);
      }
    }
  }

  void read_ready(Worker& w, std::size_t step) {
    Ready& ready = w.ready.emplace_back();
    ready.batch = w.batches[step];
    ready.rows = w.model->rows_of(ready.batch);
    for (const ps::TableKeys& rows : ready.rows) ready.values.push_back(read(rows));
  }

  // ps-bsp: all workers compute with the same rows, and the sum is applied once.
  Status in_step(const std::vector<std::uint32_t>& order) {
    divide(order);
    for (std::size_t step = 0; step < workers_[0].batches.size(); ++step) {
      std::vector<std::vector<ps::TableGradient>> pushes;
      double weight = 0;
      for (Worker& w : workers_) {
        read_ready(w, step);
        const Ready& r = w.ready.front();
        ANTDT_TRY(auto computed, w.model->compute(r.batch, r.rows, r.values));
        weight += computed.sums.weight;
        pushes.push_back(std::move(computed.gradients));
        w.ready.clear();
      }
      for (std::size_t t = 0; t < store_->tables().size(); ++t) {
        std::vector<const ps::Gradient*> parts;
        for (const auto& push : pushes) parts.push_back(&push[t].gradient);
        const ps::Gradient sum = ps::merge(parts, store_->tables()[t].width);
        store_->update(static_cast<std::uint32_t>(t), sum.keys, sum.values,
                       static_cast<float>(1 / weight));
      }
    }
    return {};
  }

  // Nobody waits for anybody.
  Status apart(const std::vector<std::uint32_t>& order) {
    divide(order);
    const double begin = future_.now() + 1;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& w = workers_[i];
      w.step = 0;
      const double at =
          begin + setting_.apart * static_cast<double>(i) / static_cast<double>(workers_.size());
      future_.at(at - setting_.hop, [this, &w] { read_ready(w, 0); });
      future_.at(at, [this, &w] { begin_step(w); });
    }
    future_.run();
    return failed_;
  }

  void begin_step(Worker& w) {
    if (w.step + 1 < w.batches.size()) {
      future_.at(future_.now() + setting_.hop,
                 [this, &w, next = w.step + 1] { read_ready(w, next); });
    }
    future_.at(future_.now() + 1, [this, &w] { end_step(w); });
  }

  void end_step(Worker& w) {
    const Ready r = std::move(w.ready.front());
    w.ready.pop_front();
    auto computed = w.model->compute(r.batch, r.rows, r.values);
    if (!computed) {
      failed_ = tl::unexpected<Error>(computed.error());
      return;
    }
    ++w.behind;
    push(w, std::move(computed->gradients), computed->sums.weight);
    if (w.model->replica() != nullptr) pull_if_due(w);
    ++w.step;
    if (w.step < w.batches.size()) {
      // The rows may be late.
      const double wait = std::max(0.0, 2 * setting_.hop - 1);
      future_.at(future_.now() + wait, [this, &w] { begin_step(w); });
    } else if (w.model->replica() != nullptr) {
      future_.at(future_.now(), [this, &w] { drain(w); });
    }
  }

  // A replica takes the place of the worker's last one in their mean, as on a server.
  void exchange(const Worker& w, const ps::TableGradient& replica) {
    if (!mean_) mean_.emplace(replica.gradient.keys, store_->tables()[replica.table].width);
    const auto index = static_cast<std::uint32_t>(&w - &workers_[0]);
    mean_->exchange({WorkerId{'w', index}, Attempt{1}}, replica.gradient.values);
    store_->update(replica.table, mean_->keys(), mean_->mean(), 1);
  }

  void apply(const Worker& w, const std::vector<ps::TableGradient>& gradients, double weight) {
    for (const ps::TableGradient& g : gradients) {
      if (store_->tables()[g.table].rule.kind == ps::UpdateRule::Kind::kMean) {
        exchange(w, g);
        continue;
      }
      store_->update(g.table, g.gradient.keys, g.gradient.values, static_cast<float>(1 / weight));
    }
  }

  void push(Worker& w, std::vector<ps::TableGradient> gradients, double weight) {
    const bool carries = w.model->replica() != nullptr && w.at == At::kHolding;
    if (carries) {
      gradients.push_back(w.model->replica()->exchange(w.centre));
      w.at = At::kPushing;
      w.behind = 0;
    } else if (setting_.atomic && w.model->replica() != nullptr && w.behind >= setting_.every) {
      apply(w, {w.model->replica()->exchange(centre_of(w))}, 1);
      w.behind = 0;
    }
    // One push is staged at a time, and committed behind the one before.
    const double staged = std::max(future_.now(), w.free) + 2 * setting_.hop;
    w.free = staged;
    const double decided = std::max(staged, w.decided) + setting_.hop;
    w.decided = decided + setting_.hop;
    future_.at(decided, [this, &w, g = std::move(gradients), weight] { apply(w, g, weight); });
    if (!carries) return;
    future_.at(w.decided, [this, &w] {
      w.at = At::kResting;
      pull_if_due(w);
    });
  }

  void pull_if_due(Worker& w) {
    if (setting_.atomic || w.at != At::kResting || w.behind == 0 || w.behind < setting_.every) {
      return;
    }
    pull_centre(w);
  }
  void pull_centre(Worker& w) {
    w.at = At::kPulling;
    future_.at(future_.now() + setting_.hop, [this, &w] { w.centre = centre_of(w); });
    future_.at(future_.now() + 2 * setting_.hop, [this, &w] {
      w.at = At::kHolding;
      if (w.step == w.batches.size()) drain(w);
    });
  }

  void drain(Worker& w) {
    if (setting_.atomic) return;
    if (w.at == At::kHolding) return push(w, {}, 1);
    if (w.at == At::kResting && w.behind > 0) pull_centre(w);
    if (w.at == At::kPushing) future_.at(w.decided, [this, &w] { drain(w); });
  }

  Result<shard_server::EvalMetrics> evaluate_with(const std::vector<float>* dense) {
    constexpr std::size_t kAtOnce = 1000;
    trainer::PsModel& model = *workers_[0].model;
    wire::EvalPartial sum;
    for (std::size_t from = 0; from < clicks_.test.count; from += kAtOnce) {
      data::Examples some;
      some.append(clicks_.test, from, std::min(from + kAtOnce, clicks_.test.count));
      auto rows = model.rows_of(some);
      if (model.replica() != nullptr) rows.push_back(model.replica()->centre_rows());
      Values values;
      for (const ps::TableKeys& of : rows) values.push_back(read(of));
      if (dense != nullptr) values.back() = *dense;
      ANTDT_TRY(const wire::EvalPartial part, model.evaluate(some, rows, values));
      shard_server::merge(sum, part);
    }
    return shard_server::metrics(sum);
  }

  // What exchange() would take from a replica is its share of the distance.
  std::vector<float> mean_of_replicas() {
    std::vector<float> mean = centre_of(workers_[0]);
    const std::vector<float> centre = mean;
    const auto share = static_cast<float>(setting_.config.shadow_alpha);
    for (Worker& w : workers_) {
      trainer::DenseReplica& replica = *w.model->replica();
      const std::vector<float> d = replica.exchange(centre).gradient.values;
      std::vector<float> back = centre;
      for (std::size_t k = 0; k < d.size(); ++k) {
        const float away = d[k] / share;
        mean[k] += away / static_cast<float>(workers_.size());
        // The replica is (1 - share) away; from there a share towards `back` restores it.
        back[k] = centre[k] + (1 - share) * away + d[k] / share;
      }
      std::ignore = replica.exchange(back);
    }
    return mean;
  }

  Result<AfterEpoch> evaluate() {
    AfterEpoch epoch;
    ANTDT_TRY(epoch.centre, evaluate_with(nullptr));
    if (setting_.config.sync == SyncStrategy::kShadowEasgd) {
      const std::vector<float> mean = mean_of_replicas();
      ANTDT_TRY(epoch.replicas, evaluate_with(&mean));
    }
    return epoch;
  }

  const Clicks& clicks_;
  const Setting setting_;
  std::deque<Worker> workers_;
  std::optional<ps::Store> store_;
  std::optional<ps::ReplicaMean> mean_;  // under shadow-ma and shadow-bmuf
  Future future_;
  Status failed_;
};

}  // namespace

Result<Clicks> read_clicks_of(const std::string& directory, std::uint32_t buckets) {
  const nlohmann::json job{{"data",
                            {{"format", "criteo"},
                             {"paths", nlohmann::json::array({directory + "/train.tsv"})},
                             {"eval_paths", nlohmann::json::array({directory + "/eval.tsv"})},
                             {"hash_buckets", buckets}}}};
  Clicks clicks;
  ANTDT_TRY(clicks.test, gaia::read_all(job.dump(), data::Split::kEval, clicks.shape));
  ANTDT_TRY(clicks.train, gaia::read_all(job.dump(), data::Split::kTrain, clicks.shape));
  return clicks;
}

Result<std::vector<AfterEpoch>> train_served(const Clicks& clicks, const Setting& setting) {
  return Served(clicks, setting).run();
}

}  // namespace antdt::bench::replicas
