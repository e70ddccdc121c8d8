#include "sim/servers/mean_checks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/servers/tally.h"

namespace antdt::sim {
namespace {

// The newest that is decided up to this decision.
template <class Sents>
auto newest(const Sents& sents, std::uint64_t decision) -> decltype(&sents.back()) {
  const auto end =
      std::ranges::upper_bound(sents, decision, {}, [](const auto& sent) { return sent.decision; });
  return end == sents.begin() ? nullptr : &*std::prev(end);
}

std::optional<float> row_of(const ps::Store& store, std::uint64_t key) {
  const ps::RowTable& rows = store.slice(ps::slice_of(key), kCentreTable);
  const std::uint32_t row = rows.find(key, ps::RowTable::hash(key));
  if (row == ps::RowTable::kNone) return {};
  return rows.values(row).front();
}

bool has_centre(const ps::ServerNode& node) {
  const std::vector<std::uint32_t> slices = node.own_slices();
  return std::ranges::any_of(centre_keys(), [&](std::uint64_t key) {
    return std::ranges::find(slices, ps::slice_of(key)) != slices.end();
  });
}

}  // namespace

void MeanChecks::decided(Generation generation, std::uint32_t home,
                         const wire::PsDecision& decision, const Replicas& replicas) {
  OfHome& of = decided_[generation][home];
  const std::uint64_t exchanges = of.exchanges.back() + replicas.size();
  of.exchanges.push_back(exchanges);
  for (const auto& [member, replica] : replicas) {
    of.workers[member].sent.push_back({decision.number, exchanges, replica});
  }
  for (const wire::PsMember& left : decision.left) {
    of.workers[{left.worker, left.attempt}].left = decision.number;
  }
}

void MeanChecks::look(Generation generation, const Program& who, const ps::ServerNode& node,
                      Seen& seen) {
  const ps::Server& server = node.server();
  const auto found = decided_.find(generation);
  if (found == decided_.end() || server.store() == nullptr) return;
  std::uint64_t exchanges = 0, decisions = 0;
  for (const auto& [home, of] : found->second) {
    // Those of a primary are heard of once its backup has them.
    if (server.decided(home) >= of.exchanges.size()) return;
    exchanges += of.exchanges[server.decided(home)];
    decisions += server.decided(home);
  }
  const ps::ReplicaMean* const mean = server.mean_of(kCentreTable);
  if (mean == nullptr && !has_centre(node)) return;
  const std::uint64_t made = mean == nullptr ? 0 : mean->exchanges();
  if (made != exchanges) {
    world_.violate("mean", fmt::format("{} exchanges are decided, and {} made; {}", exchanges, made,
                                       who.doing()));
  }
  if (mean == nullptr) return;
  look_at_replicas(found->second, who, server, *mean);
  look_at_rows(who, *server.store(), *mean, decisions, seen);
}

void MeanChecks::look_at_replicas(const Homes& homes, const Program& who, const ps::Server& server,
                                  const ps::ReplicaMean& mean) {
  std::size_t known = 0;
  for (const auto& [home, of] : homes) {
    const std::uint64_t applied = server.decided(home);
    for (const auto& [member, worker] : of.workers) {
      const Sent* const sent = newest(worker.sent, applied);
      const bool left = worker.left > 0 && worker.left <= applied;
      const auto there = mean.replicas().find(member);
      const auto wrong = [&](const char* what) {
        world_.violate("mean", fmt::format("the replica of {}.{} is {} the mean; {}", member.worker,
                                           member.attempt, what, who.doing()));
      };
      if (there == mean.replicas().end()) {
        // Exchanges of other homes may have come before it, or after.
        const std::uint64_t most = sent == nullptr ? 0 : mean.exchanges() - sent->exchanges;
        if (sent != nullptr && !left && most <= ps::ReplicaMean::kRounds) wrong("not in");
        continue;
      }
      ++known;
      const auto is_new = [&](float value) { return value == sent->replica; };
      if (left) {
        wrong("still in");
      } else if (sent == nullptr || !std::ranges::all_of(there->second.values, is_new)) {
        wrong("not the newest in");
      }
    }
  }
  if (known == mean.replicas().size()) return;
  world_.violate("mean", fmt::format("{} replicas, of which {} are known; {}",
                                     mean.replicas().size(), known, who.doing()));
}

// Several decisions may be applied between two looks, for example if they have waited for a
// checkpoint. Then where the last exchange began, and who was in its mean, is not known any more.
void MeanChecks::look_at_rows(const Program& who, const ps::Store& store,
                              const ps::ReplicaMean& mean, std::uint64_t decisions, Seen& seen) {
  const bool follows = decisions <= std::exchange(seen.decisions, decisions) + 1;
  const std::uint64_t made = mean.exchanges() - std::exchange(seen.exchanges, mean.exchanges());
  double sum = 0;
  for (const auto& [member, replica] : mean.replicas()) sum += replica.values.front();
  const double target = sum / static_cast<double>(mean.replicas().size());
  const double share = sync_ == SyncStrategy::kShadowMa ? 1 : kEta;
  for (const std::uint64_t key : mean.keys()) {
    const std::optional<float> row = row_of(store, key);
    if (!row) {  // a backup that joins gets another image, and has not received this row yet
      seen.rows.erase(key);
      continue;
    }
    const auto before = seen.rows.find(key);
    if (before != seen.rows.end() && (follows || made == 0)) {
      const double from = before->second;
      const double expected = made == 0 ? from : (1 - share) * from + share * target;
      if (std::abs(*row - expected) > 1e-5 * (1 + std::abs(expected))) {
        world_.violate("mean", fmt::format("row {} of the centre was {}, and is {} after {} "
                                           "exchanges where it should be {}; {}",
                                           key, from, *row, made, expected, who.doing()));
      }
    }
    seen.rows[key] = *row;
  }
}

}  // namespace antdt::sim
