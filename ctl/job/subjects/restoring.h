// Training goes on from a checkpoint: all of the model, or of lost servers their part.
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
