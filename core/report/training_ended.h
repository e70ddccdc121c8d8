// In status and summary: that the workers' program ended the training before its last epoch.
#pragma once

#include <cstdint>
#include <string>

namespace antdt::report {

struct TrainingEnded {
  std::uint64_t epochs = 0;  // in which something was trained
  std::string reason = {};
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("epochs", m.epochs);
    v("reason", m.reason);
  }
};

}  // namespace antdt::report
