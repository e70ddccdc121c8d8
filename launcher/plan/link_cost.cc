#include "launcher/plan/link_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace antdt::launcher::plan {
namespace {

constexpr double kSlotBytes = 52;               // trainer/worker/step_slot.h
constexpr double kNumberBytes = 8;              // of a row
constexpr double kCostOfRows = 1.5;             // as in trainer/torch/sparse_rows.cc
constexpr double kBytesOfARound = 32.0 * 1024;  // as in trainer/collective/tcp/rounds.cc

double sending_s(const Link& link, double bytes) {
  return link.bytes_per_s > 0 ? bytes / link.bytes_per_s : 0;
}

double rounds_of(std::uint32_t members) {
  return members < 2 ? 0 : static_cast<double>(std::bit_width(members - 1));
}

double rounds_of_doubling(std::uint32_t members) {
  const bool folds = !std::has_single_bit(members);
  return std::bit_width(members) - 1 + (folds ? 2 : 0);
}

}  // namespace

bool doubling_is_quicker(std::uint32_t members, double bytes) {
  if (members < 2) return true;
  const double n = members;
  return rounds_of_doubling(members) * (kBytesOfARound + bytes) <=
         2 * (n - 1) * (kBytesOfARound + bytes / n);
}

double slots_bytes(std::uint32_t members) { return kSlotBytes * members; }

double sum_s(const Link& link, std::uint32_t members, double bytes) {
  if (members < 2) return 0;
  const double n = members;
  if (doubling_is_quicker(members, bytes)) {
    return rounds_of_doubling(members) * (link.latency_s + sending_s(link, bytes));
  }
  return 2 * (n - 1) * (link.latency_s + sending_s(link, bytes / n));
}

double gather_s(const Link& link, std::uint32_t members, double bytes) {
  if (members < 2) return 0;
  const double n = members;
  double messages = rounds_of(members);
  // From the second round on, some member's blocks are two runs in memory, so two messages.
  if (link.held_back) messages += messages - 1;
  return messages * link.latency_s + sending_s(link, bytes * (n - 1) / n);
}

bool rows_are_quicker(const ModelSize& model, std::uint32_t members, double rows_of_all) {
  const double n = members;
  const double whole = 2 * (n - 1) / n * model.table_bytes();
  return kCostOfRows * rows_of_all * (kNumberBytes + model.row_bytes) < whole;
}

double allreduce_s(const Exchanges& exchanges, const ModelSize& model, const AllReduceStep& step) {
  double all = exchanges.gather_s(slots_bytes(exchanges.members));
  for (const double bytes : model.sums) all += exchanges.sum_s(bytes);
  if (model.table_rows == 0) return all;
  if (step.counts_rows) {
    const double counting = exchanges.gather_s(kNumberBytes * exchanges.members);
    all += std::max(0.0, counting - step.computing_s);
  }
  return all + (step.sends_rows
                    ? exchanges.gather_s(step.rows_of_all * (kNumberBytes + model.row_bytes))
                    : exchanges.sum_s(model.table_bytes()));
}

double allreduce_s(const Link& link, std::uint32_t members, const ModelSize& model,
                   const AllReduceStep& step) {
  const Exchanges exchanges{members, [&](double bytes) { return sum_s(link, members, bytes); },
                            [&](double bytes) { return gather_s(link, members, bytes); }};
  return allreduce_s(exchanges, model, step);
}

double pulled_bytes(const ModelSize& model, double rows) {
  return model.dense_bytes() + rows * model.row_bytes;
}

double pushed_bytes(const ModelSize& model, double rows) {
  return model.dense_bytes() + rows * (kNumberBytes + model.row_bytes);
}

ServedCost servers_s(const Link& link, const ModelSize& model, const ServedStep& step) {
  const double n = step.servers;
  const double w = step.workers;
  const double pulled = pulled_bytes(model, step.rows);
  const double said = pushed_bytes(model, step.rows) + kNumberBytes * step.rows;
  ServedCost cost;
  if (link.held_back) {
    // A worker asks each server for rows, sends each its gradients, and commits.
    const double commits = step.decides ? 1 : 0;
    cost.worker_s = (2 * n + commits) * link.latency_s + sending_s(link, said);
    if (link.answers_held_back) {  // to each of these
      const double decisions = commits * (step.one_home ? 1 : 1 / n);
      cost.server_s = w * ((2 + decisions) * link.latency_s + sending_s(link, pulled / n));
    }
    return cost;
  }
  // There and back for pull, push and commit.
  cost.rounds_s = (step.decides ? 6 : 4) * link.latency_s;
  cost.bytes_s = sending_s(link, step.remote_bytes);
  return cost;
}

double ds_sync_s(const Link& link, std::uint32_t members, const ModelSize& model) {
  if (members < 2) return 0;
  const auto group = static_cast<std::uint32_t>(std::ceil(std::sqrt(members)));
  const double n = group;
  const double bytes = model.mixed * (model.dense_bytes() + model.table_bytes());
  const double mixing = 2 * (n - 1) * link.latency_s + sending_s(link, 2 * (n - 1) / n * bytes);
  return mixing + gather_s(link, members, kSlotBytes * members);
}

}  // namespace antdt::launcher::plan
