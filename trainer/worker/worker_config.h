// What the machine of a worker is given, of whichever kind.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "core/wire/membership_messages.h"

namespace antdt::worker {

struct WorkerConfig {
  WorkerId self;
  wire::Join join;  // what is the same in each: pid, data, device, key
  bool has_train_data = true;
  bool has_eval_data = true;
  std::uint32_t eval_batch = 256;  // records
  // New processes begin with the same state, which they compute from the job's seed. Otherwise
  // all begin with that of rank 0.
  bool begins_alike = true;
};

}  // namespace antdt::worker
