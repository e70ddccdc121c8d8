// Carries out what the lifecycle wants done.
#pragma once

#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class LifeOrders {
 public:
  explicit LifeOrders(Parts& parts) : parts_(parts) {}

  void carry_out(const lifecycle::Effect& effect, Work& work);

 private:
  void release(const lifecycle::ReleaseWorker& gone, Work& work);
  void sum_up(Member gone, Work& work);
  void end(const lifecycle::EndJob& e, Work& work);

  Parts& parts_;
};

}  // namespace antdt::ctl::job
