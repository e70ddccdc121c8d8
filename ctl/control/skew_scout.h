// Which threshold Gaia's domains use: SkewScout, of Hsieh, Phanishayee, Mutlu and Gibbons, "The
// Non-IID Data Quagmire of Decentralized Machine Learning", ICML 2020.
//
//   training ──Trained, `every` batches since the last visits──> visiting   (Visit)
//   visiting ──Visited──> training                (SetThreshold if another threshold is tried)
//   visiting ──VisitsFailed, or Visited with a loss that is not a finite number──> training
//                                              (visits again after `every` more batches)
//
// In a visit a copy of one domain's replica is evaluated on another domain's records. The loss of
// accuracy AL is how much worse it does there than that domain's own replica. If all domains have
// alike data it is near 0; if their data differ, it is the larger the further the replicas have
// drifted apart, and so the larger the threshold is. The threshold minimises the paper's objective
//
//     weight_loss * max(0, AL - tolerated_loss) + weight_bytes * (bytes sent / bytes if all were)
//
// by hill climbing over thresholds that are `factor` apart, in [least, most]. Above the tolerated
// loss the tighter (smaller) threshold is tried, at once. Otherwise only the looser one can be
// better, and it is tried after kCalm visits in a row that found the loss tolerated, and only if
// the objective would be smaller there with `factor` times the loss: the paper does not say so, but
// one lucky visit must not cost accuracy. A step that made the objective worse is taken back. What
// was measured longer ago than kFresh visits is forgotten, because the model and with it both terms
// change while it trains.
//
// It is a part of the controller: its driver turns Visit into a phase of evaluation, and
// SetThreshold into an action. Nothing is durable: a job daemon that is started again goes on from
// the threshold in force, without measurements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"

namespace antdt::ctl::skew {

// What was trained since the last Trained. `dense_bytes` is what the same steps would have sent
// between domains if every element were sent.
struct Trained {
  std::uint64_t batches = 0;
  double sent_bytes = 0;
  double dense_bytes = 0;
};
struct Visited {
  double accuracy_loss = 0;  // mean over the domains, as a fraction: 0.05 is 5 points
};
struct VisitsFailed {};  // a domain was lost, or has no records to evaluate
using Input = std::variant<Trained, Visited, VisitsFailed>;

struct Visit {};
struct SetThreshold {
  double threshold = 0;
  std::string reason;  // for an engineer: what was seen, and what changes
};
using Effect = std::variant<Visit, SetThreshold>;
using Effects = std::vector<Effect>;

struct Objective {
  double tolerated_loss = 0.05;  // the paper's sigma, lambda for the loss and lambda for bytes
  double weight_loss = 50;
  double weight_bytes = 1;
  bool operator==(const Objective&) const = default;
};
[[nodiscard]] double cost_of(const Objective& objective, double accuracy_loss, double bytes_ratio);

struct ScoutOptions {
  Objective objective = {};
  std::uint64_t every = 50;  // batches of a domain between visits; at least 1
  double initial = 0.01;     // the threshold at first, within the bounds
  double least = 0.000625;
  double most = 0.64;
  double factor = 2;  // between neighbouring thresholds; above 1
};

class SkewScout {
 public:
  static constexpr std::uint64_t kFresh = 8;
  static constexpr std::uint32_t kCalm = 2;

  explicit SkewScout(const ScoutOptions& options);

  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] double threshold() const { return threshold_of(level_); }

 private:
  enum class State { kTraining, kVisiting };
  struct Measured {
    double cost = 0;
    std::uint64_t visit = 0;  // its number; the first is 1
  };

  void on(const Trained& input, MonoTime now, Effects& out);
  void on(const Visited& input, MonoTime now, Effects& out);
  void on(const VisitsFailed& input, MonoTime now, Effects& out);
  void check_invariants() const;

  [[nodiscard]] double threshold_of(int level) const;
  [[nodiscard]] bool in_bounds(int level) const;
  void forget_old();
  // The neighbour that is tried next; empty: the present threshold stays.
  [[nodiscard]] std::optional<int> looser(double accuracy_loss, double bytes_ratio) const;
  [[nodiscard]] std::optional<int> another() const;
  [[nodiscard]] bool is_known_to_be_better(int level) const;

  const ScoutOptions options_;
  State state_ = State::kTraining;
  int level_ = 0;                     // the threshold is initial * factor^level
  std::map<int, Measured> measured_;  // by level
  std::uint64_t visits_ = 0;
  std::uint32_t calm_ = 0;  // visits in a row, at this threshold, that found the loss tolerated
  Trained round_;           // since the last visits
};

}  // namespace antdt::ctl::skew
