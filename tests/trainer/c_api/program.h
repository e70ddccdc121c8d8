// A program on the C interface that counts how often each record entered its state, and keeps what
// it was ordered.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "include/antdt.h"

namespace antdt {

inline constexpr std::uint32_t kPatience = 20'000;  // ms; bounds a failure

inline antdt_options alone(std::uint64_t records) {
  antdt_options options = ANTDT_OPTIONS_INIT;
  options.records = records;
  return options;
}

inline antdt_job* opened(const antdt_options& options) {
  antdt_job* job = nullptr;
  EXPECT_EQ(antdt_open(&options, &job), ANTDT_OK) << antdt_last_error();
  return job;
}

inline antdt_order next(antdt_job* job) {
  antdt_order order{};
  order.struct_size = sizeof(order);
  EXPECT_EQ(antdt_next(job, &order, kPatience), ANTDT_OK) << antdt_last_error();
  return order;
}

class CountingProgram {
 public:
  CountingProgram(antdt_job* job, std::uint64_t records)
      : job_(job), counts(records), step_(records) {
    const antdt_part part{sizeof(part), ANTDT_F64, "counts", counts.data(),
                          records * 8,  nullptr,   0,        0};
    EXPECT_EQ(antdt_register(job, &part), ANTDT_OK) << antdt_last_error();
  }

  // Obeys until the order to leave, which it answers. `before` is called with each pending order
  // and returns true if it has answered.
  antdt_order run(const std::function<bool(const antdt_order&)>& before = nullptr) {
    while (!testing::Test::HasFailure()) {
      const antdt_order order = next(job_);
      log.push_back(order);
      if (order.kind == ANTDT_ORDER_LEAVE) return order;
      if (!before || !before(order)) obey(order);
    }
    return {};
  }

  void obey(const antdt_order& order) {
    switch (order.kind) {
      case ANTDT_ORDER_COMPUTE:
        for (std::uint64_t i = 0; i < order.count; ++i) ++step_.at(order.records[i]);
        trained.insert(trained.end(), order.records, order.records + order.count);
        EXPECT_EQ(antdt_done_compute(job_, static_cast<double>(order.count), 0.5), ANTDT_OK);
        return;
      case ANTDT_ORDER_REDUCE:
        reduce();
        break;
      case ANTDT_ORDER_APPLY:
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += step_[i];
        step_.assign(step_.size(), 0);
        break;
      case ANTDT_ORDER_DISCARD:
      case ANTDT_ORDER_STATE_REPLACED:
        step_.assign(step_.size(), 0);
        break;
      case ANTDT_ORDER_EVALUATE: {
        evaluated.insert(evaluated.end(), order.records, order.records + order.count);
        antdt_metrics sums{};
        sums.struct_size = sizeof(sums);
        sums.records = order.count;
        EXPECT_EQ(antdt_done_evaluate(job_, &sums), ANTDT_OK) << antdt_last_error();
        return;
      }
      default:
        break;
    }
    EXPECT_EQ(antdt_done(job_), ANTDT_OK) << antdt_last_error();
  }

 private:
  void reduce() {
    const int added = antdt_reduce(job_, step_.data(), step_.size(), ANTDT_F64);
    reduced = log.empty() ? 0 : log.back().step;
    const int summed = antdt_wait(job_, kPatience);
    if (loses_members && summed == ANTDT_INTERRUPTED) {
      interrupted = true;
      return;
    }
    EXPECT_EQ(added, ANTDT_OK) << antdt_last_error();
    EXPECT_EQ(summed, ANTDT_OK);
  }
  antdt_job* job_;

 public:
  bool loses_members = false;              // a sum may be interrupted
  bool interrupted = false;                // and one was
  std::atomic<std::uint64_t> reduced = 0;  // the step whose sum is waited for, or was last
  std::vector<double> counts;
  std::vector<std::uint64_t> trained, evaluated;  // in their order
  std::vector<antdt_order> log;                   // their records are not valid any more

 private:
  std::vector<double> step_;
};

}  // namespace antdt
