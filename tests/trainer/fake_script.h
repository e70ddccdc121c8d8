// What a test orders a FakeJob to do, and when. Callable from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/wire/training_messages.h"

namespace antdt::trainer {

class FakeScript {
 public:
  // When the members have made `step` steps: once each.
  void send_at_step(std::uint64_t step, wire::Plan plan) {
    const std::lock_guard lock(mutex_);
    plans_[step] = std::move(plan);
  }
  void send_at_step(std::uint64_t step, wire::CheckpointOrder order) {
    const std::lock_guard lock(mutex_);
    orders_[step] = order;
  }
  void leave_at_step(std::uint64_t step, WorkerId worker) {
    const std::lock_guard lock(mutex_);
    leaves_[step] = worker;
  }
  void abort_at_step(std::uint64_t step, bool and_leave) {
    const std::lock_guard lock(mutex_);
    aborts_[step] = and_leave;
  }
  // A worker that has joined, or will, becomes a member then.
  void admit_at_step(std::uint64_t step, WorkerId worker) {
    const std::lock_guard lock(mutex_);
    admissions_[step].push_back(worker);
  }
  // In the evaluation, once so many records are committed.
  void admit_at_evaluated(std::uint64_t records, WorkerId worker) {
    const std::lock_guard lock(mutex_);
    eval_admissions_[records] = worker;
  }

  struct Due {
    std::vector<wire::Plan> plans;
    std::vector<wire::CheckpointOrder> orders;
    std::vector<WorkerId> leaves;
    std::vector<WorkerId> admissions;
    std::optional<bool> abort;  // and all leave
  };
  [[nodiscard]] Due take_due(std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    Due due;
    take(plans_, step, [&](wire::Plan& plan) { due.plans.push_back(std::move(plan)); });
    take(orders_, step, [&](const auto& order) { due.orders.push_back(order); });
    take(leaves_, step, [&](WorkerId worker) { due.leaves.push_back(worker); });
    take(admissions_, step, [&](const std::vector<WorkerId>& workers) {
      due.admissions.insert(due.admissions.end(), workers.begin(), workers.end());
    });
    take(aborts_, step, [&](bool and_leave) { due.abort = and_leave; });
    return due;
  }
  [[nodiscard]] std::vector<WorkerId> take_admitted_at(std::uint64_t evaluated) {
    const std::lock_guard lock(mutex_);
    std::vector<WorkerId> admitted;
    take(eval_admissions_, evaluated, [&](WorkerId worker) { admitted.push_back(worker); });
    return admitted;
  }

  // Faults of forming generations. Set before any is formed.
  struct Formation {
    // The Settle of this generation is sent only to `settled_only`; then the generation is aborted.
    Generation unsettled = {};
    WorkerId settled_only = {};
    // The first generation is aborted before a member can have carried out its Form.
    bool aborts_first = false;
    // From the second generation on, the job acts as if none had settled before.
    bool forgets_base = false;
    // The checkpoint from which the first generation begins.
    std::string restore = {};
  };
  void form(Formation formation) {
    const std::lock_guard lock(mutex_);
    formation_ = std::move(formation);
  }
  [[nodiscard]] Formation formation() const {
    const std::lock_guard lock(mutex_);
    return formation_;
  }

 private:
  template <class Map, class Act>
  static void take(Map& script, std::uint64_t reached, Act act) {
    while (!script.empty() && script.begin()->first <= reached) {
      auto due = script.extract(script.begin());
      act(due.mapped());
    }
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, wire::Plan> plans_;
  std::map<std::uint64_t, wire::CheckpointOrder> orders_;
  std::map<std::uint64_t, WorkerId> leaves_;
  std::map<std::uint64_t, bool> aborts_;
  std::map<std::uint64_t, std::vector<WorkerId>> admissions_;
  std::map<std::uint64_t, WorkerId> eval_admissions_;
  Formation formation_;
};

}  // namespace antdt::trainer
