#include "bench/gaia/domains.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>

#include "bench/gaia/replica.h"
#include "core/permutation.h"
#include "trainer/sync/gaia/mirror_clock.h"
#include "trainer/sync/gaia/update.h"

namespace antdt::bench::gaia {
namespace {

using antdt::sync::gaia::dense_bytes;
using antdt::sync::gaia::Direction;
using antdt::sync::gaia::Encoder;
using antdt::sync::gaia::MirrorClock;
using antdt::sync::gaia::Stamp;
using antdt::sync::gaia::threshold_at;

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of the learning rate in the step that follows so many.
double factor_of(const Setting& setting, std::uint64_t steps_done) {
  return static_cast<double>(steps_done) < setting.decays_at * setting.steps ? 1 : 0.1;
}

constexpr std::size_t kVisited = 500;  // records on which a visiting copy is evaluated

using Bytes = std::shared_ptr<const std::vector<std::byte>>;
struct Letter {
  double arrives_s = 0;
  std::uint64_t clock = 0;
  Bytes bytes;
};

struct Domain {
  Domain(Replica made, Batches own, std::uint32_t domains, std::uint32_t index,
         std::uint64_t most_ahead)
      : replica(std::move(made)),
        batches(std::move(own)),
        clock(domains, index, most_ahead),
        inbox(domains) {
    const auto values = replica.values();
    known.assign(values.begin(), values.end());
  }
  Replica replica;
  Batches batches;
  std::vector<float> known;
  MirrorClock clock;
  std::vector<std::deque<Letter>> inbox;  // by origin
  data::Examples visited;                 // own records on which visiting copies are evaluated
  double free_s = 0;                      // when it can begin its next step
  double uplink_free_s = 0;
};

class Run {
 public:
  Run(const Images& images, const Setting& setting) : images_(images), setting_(setting) {
    threshold_ = setting.threshold;
    if (setting.scout) {
      scout_.emplace(*setting.scout);
      threshold_ = scout_->threshold();
    }
  }

  Result<Outcome> operator()() {
    ANTDT_RETURN_IF_ERROR(make_domains());
    while (const auto next = first_that_can_begin()) {
      ANTDT_RETURN_IF_ERROR(step(*next));
      if (outcome_.steps_to_target) break;
    }
    ANTDT_RETURN_IF_ERROR(finish());
    return outcome_;
  }

 private:
  Status make_domains() {
    const auto parts = divide(images_.train, setting_.domains, setting_.division, setting_.seed);
    for (std::uint32_t d = 0; d < setting_.domains; ++d) {
      ANTDT_TRY(auto replica,
                Replica::make(images_.shape, setting_.rate, setting_.momentum, setting_.seed));
      Batches batches(parts[d], setting_.batch, combine_seed(setting_.seed, d));
      domains_.emplace_back(std::move(replica), std::move(batches), setting_.domains, d,
                            setting_.most_ahead);
      const std::span rows(domains_[d].batches.rows());
      take_rows(images_.train, rows.first(std::min<std::size_t>(kVisited, rows.size())),
                domains_[d].visited);
    }
    return {};
  }

  // When the domain can begin its next step; kNever: when others have done theirs.
  double begins_s(std::uint32_t d) const {
    const Domain& domain = domains_[d];
    if (domain.clock.own_clock() == setting_.steps) return kNever;
    double at = domain.free_s;
    for (const std::uint32_t other : domain.clock.awaited()) {
      const std::uint64_t needed = domain.clock.own_clock() - setting_.most_ahead;
      const auto& letters = domain.inbox[other];
      const auto letter = std::ranges::find(letters, needed, &Letter::clock);
      if (letter == letters.end()) return kNever;
      at = std::max(at, letter->arrives_s);
    }
    return at;
  }
  std::optional<std::uint32_t> first_that_can_begin() const {
    std::optional<std::uint32_t> first;
    for (std::uint32_t d = 0; d < setting_.domains; ++d) {
      const double at = begins_s(d);
      if (at < (first ? begins_s(*first) : kNever)) first = d;
    }
    return first;
  }

  Status step(std::uint32_t d) {
    Domain& domain = domains_[d];
    const double begin = begins_s(d);
    ANTDT_RETURN_IF_ERROR(receive(d, begin));
    data::Examples batch;
    domain.batches.next(images_.train, batch);
    const double factor = factor_of(setting_, domain.clock.own_clock());
    domain.replica.set_rate(factor);
    // As under all-reduce: by the weight of all domains' records in a step.
    ANTDT_RETURN_IF_ERROR(domain.replica.train(
        std::span(&batch, 1), static_cast<double>(setting_.batch) * setting_.domains));
    domain.free_s = begin + setting_.compute_s;
    send(d, factor, due_whole(domain.clock.own_clock() + 1));
    outcome_.seconds = std::max(outcome_.seconds, domain.free_s);
    if (setting_.target > 0) ANTDT_RETURN_IF_ERROR(look(d));
    if (scout_ && d + 1 == setting_.domains) ANTDT_RETURN_IF_ERROR(tell_scout());
    return {};
  }
  bool due_whole(std::uint64_t clock) const {
    return setting_.whole_every > 0 && clock % setting_.whole_every == 0;
  }

  Status receive(std::uint32_t d, double now_s) {
    Domain& domain = domains_[d];
    for (std::uint32_t other = 0; other < setting_.domains; ++other) {
      auto& letters = domain.inbox[other];
      for (; !letters.empty() && letters.front().arrives_s <= now_s; letters.pop_front()) {
        const auto values = domain.replica.values();
        ANTDT_TRY(const auto message,
                  antdt::sync::gaia::read_message(*letters.front().bytes, 0, values.size()));
        ANTDT_TRY(const bool is_new, domain.clock.heard(message.stamp.domain, message.stamp.clock));
        if (is_new) antdt::sync::gaia::apply(message, Direction::kAdd, values, domain.known);
        lag_ += static_cast<double>(domain.clock.own_clock()) -
                static_cast<double>(message.stamp.clock);
        ++received_;
      }
    }
    return {};
  }

  void send(std::uint32_t d, double factor, bool whole) {
    Domain& domain = domains_[d];
    domain.clock.advance();
    const auto values = domain.replica.values();
    auto bytes = std::make_shared<std::vector<std::byte>>();
    const Stamp stamp{d, domain.clock.own_clock(), whole};
    const std::uint64_t significant =
        encoder_.encode(stamp, 0, values, domain.known, threshold_at(threshold_, factor), *bytes);
    const auto sent = static_cast<double>(bytes->size());
    const auto dense = static_cast<double>(dense_bytes(values.size()));
    sent_ += sent;
    dense_ += dense;
    round_.sent_bytes += sent;
    round_.dense_bytes += dense;
    paper_ += std::min(8.0 * static_cast<double>(significant), dense);
    elements_ += static_cast<double>(significant);
    all_elements_ += static_cast<double>(values.size());
    ++messages_;
    domain.uplink_free_s = std::max(domain.uplink_free_s, domain.free_s);
    for (std::uint32_t other = 0; other < setting_.domains; ++other) {
      if (other == d) continue;
      domain.uplink_free_s += sent / setting_.links.bytes_per_s;
      domains_[other].inbox[d].push_back(
          {domain.uplink_free_s + setting_.links.latency_s, stamp.clock, bytes});
    }
  }

  Status look(std::uint32_t d) {
    Domain& domain = domains_[d];
    if (d != 0 || domain.clock.own_clock() % setting_.look_every != 0) return {};
    ANTDT_TRY(const double accuracy, domain.replica.accuracy(images_.test));
    if (accuracy >= setting_.target) {
      outcome_.steps_to_target = static_cast<std::uint32_t>(domain.clock.own_clock());
      outcome_.seconds = domain.free_s;
    }
    return {};
  }

  // All domains have done the same step.
  Status tell_scout() {
    ctl::skew::Effects effects;
    round_.batches = 1;
    scout_->step(round_, {}, effects);
    round_ = {};
    if (effects.empty()) return {};
    double loss = 0;
    for (std::uint32_t d = 0; d < setting_.domains; ++d) {
      Domain& guest = domains_[d];
      Domain& host = domains_[(d + 1) % setting_.domains];
      ANTDT_TRY(const double of_host, host.replica.accuracy(host.visited));
      ANTDT_TRY(const double of_guest, guest.replica.accuracy(host.visited));
      loss += (of_host - of_guest) / setting_.domains;
    }
    // A copy goes to one other domain, where a message goes to all others.
    sent_ += setting_.domains * static_cast<double>(dense_bytes(domains_[0].known.size())) /
             (setting_.domains - 1);
    effects.clear();
    scout_->step(ctl::skew::Visited{loss}, {}, effects);
    threshold_ = scout_->threshold();
    outcome_.thresholds.push_back(threshold_);
    return {};
  }

  Status finish() {
    for (std::uint32_t d = 0; d < setting_.domains; ++d) {
      ANTDT_RETURN_IF_ERROR(receive(d, kNever));
      ANTDT_TRY(const double accuracy, domains_[d].replica.accuracy(images_.test));
      outcome_.replicas += accuracy / setting_.domains;
      outcome_.worst_replica = d == 0 ? accuracy : std::min(outcome_.worst_replica, accuracy);
    }
    for (std::uint32_t d = 0; d < setting_.domains; ++d) send(d, 1, true);
    ANTDT_RETURN_IF_ERROR(receive(0, kNever));
    ANTDT_TRY(outcome_.merged, domains_[0].replica.accuracy(images_.test));
    const auto values = domains_[0].replica.values();
    outcome_.model.assign(values.begin(), values.end());
    outcome_.bytes = sent_ / dense_;
    outcome_.paper_bytes = paper_ / dense_;
    outcome_.elements = elements_ / all_elements_;
    outcome_.message_bytes = sent_ / messages_;
    outcome_.dense_bytes = dense_ / messages_;
    outcome_.mean_lag = received_ == 0 ? 0 : lag_ / received_;
    return {};
  }

  const Images& images_;
  const Setting& setting_;
  std::vector<Domain> domains_;
  Encoder encoder_;
  std::optional<ctl::skew::SkewScout> scout_;
  ctl::skew::Trained round_;  // since the scout was told
  double threshold_ = 0;
  double sent_ = 0, dense_ = 0, paper_ = 0;  // bytes, of each message once
  double elements_ = 0, all_elements_ = 0, messages_ = 0;
  double lag_ = 0, received_ = 0;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> train_by_gaia(const Images& images, const Setting& setting) {
  return Run(images, setting)();
}

Result<Outcome> train_by_sums(const Images& images, const Setting& setting) {
  ANTDT_TRY(auto replica,
            Replica::make(images.shape, setting.rate, setting.momentum, setting.seed));
  const auto parts = divide(images.train, setting.domains, setting.division, setting.seed);
  std::vector<Batches> batches;
  for (std::uint32_t d = 0; d < setting.domains; ++d) {
    batches.emplace_back(parts[d], setting.batch, combine_seed(setting.seed, d));
  }
  std::vector<data::Examples> step(setting.domains);
  Outcome outcome;
  outcome.dense_bytes = static_cast<double>(replica.values().size_bytes());
  for (std::uint32_t s = 1; s <= setting.steps; ++s) {
    for (std::uint32_t d = 0; d < setting.domains; ++d) batches[d].next(images.train, step[d]);
    replica.set_rate(factor_of(setting, s - 1));
    ANTDT_RETURN_IF_ERROR(
        replica.train(step, static_cast<double>(setting.batch) * setting.domains));
    if (setting.target == 0 || s % setting.look_every != 0) continue;
    ANTDT_TRY(const double accuracy, replica.accuracy(images.test));
    if (accuracy < setting.target) continue;
    outcome.steps_to_target = s;
    break;
  }
  ANTDT_TRY(outcome.merged, replica.accuracy(images.test));
  const auto values = replica.values();
  outcome.model.assign(values.begin(), values.end());
  outcome.replicas = outcome.worst_replica = outcome.merged;
  return outcome;
}

double ring_s(const Links& links, std::uint32_t domains, double bytes) {
  return 2 * (domains - 1) * (links.latency_s + bytes / domains / links.bytes_per_s);
}

double direct_s(const Links& links, std::uint32_t domains, double bytes) {
  return links.latency_s + (domains - 1) * bytes / links.bytes_per_s;
}

}  // namespace antdt::bench::gaia
