// Training goes on from a checkpoint: of the whole model, or of the lost servers' part.
#pragma once

#include "ctl/job/job_events.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Restoring {
 public:
  explicit Restoring(Parts& parts) : parts_(parts) {}

  void on(const CheckpointFound& e, Work& work);
  void on(const CheckpointFilesMoved& e, Work& work);

 private:
  Parts& parts_;
};

}  // namespace antdt::ctl::job
