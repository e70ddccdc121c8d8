// What the job's newest evaluation found over all members, as far as this member has heard.
#pragma once

#include <mutex>
#include <optional>

#include "core/wire/training_messages.h"

namespace antdt::capi {

class Evaluations {
 public:
  // In the member's thread, with each phase.
  void hear(const std::optional<wire::Evaluated>& evaluated) {
    const std::lock_guard lock(mutex_);
    newest_ = evaluated;
  }
  [[nodiscard]] std::optional<wire::Evaluated> newest() const {
    const std::lock_guard lock(mutex_);
    return newest_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<wire::Evaluated> newest_;
};

}  // namespace antdt::capi
