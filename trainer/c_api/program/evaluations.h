// What the job's newest evaluation found over all members, as far as this member has heard.
#pragma once

#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "core/wire/training_messages.h"
#include "include/antdt.h"

namespace antdt::capi {

class Evaluations {
 public:
  // In the member's thread, with each phase.
  void hear(const std::optional<wire::Evaluated>& evaluated) {
    const std::lock_guard lock(mutex_);
    newest_ = evaluated;
  }
  // For the program. What it points to is valid until the next call.
  [[nodiscard]] antdt_evaluation told() {
    const std::lock_guard lock(mutex_);
    told_ = newest_.value_or(wire::Evaluated{});
    named_.clear();
    for (const wire::NamedSum& sum : told_.named) named_.push_back({sum.name.c_str(), sum.sum});
    const double nobody = std::numeric_limits<double>::quiet_NaN();
    antdt_evaluation said{};
    said.epoch = told_.epoch.value;
    said.records = told_.records;
    said.log_loss = told_.log_loss.value_or(nobody);
    said.accuracy = told_.accuracy.value_or(nobody);
    said.auc = told_.auc.value_or(nobody);
    said.named = named_.data();
    said.named_count = named_.size();
    return said;
  }

 private:
  std::mutex mutex_;
  std::optional<wire::Evaluated> newest_;
  wire::Evaluated told_;
  std::vector<antdt_sum> named_;  // of `told_`
};

}  // namespace antdt::capi
