// Fault injections that an operator orders while the job runs. Every worker is told the newest one,
// including workers that join later. The order is durable. Its elapsed time is not, so after a
// restart of the job daemon its duration begins again.
#pragma once

#include <optional>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/drill_messages.h"
#include "ctl/job/job_events.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Injections {
 public:
  explicit Injections(Parts& parts) : parts_(parts) {}

  void on(const InjectionOrdered& e, Work& work);
  // A worker that joins is told the rest of the present injection.
  void tell_newcomer(Member worker, Work& work) const { tell(worker, true, work); }

  [[nodiscard]] const wire::Injected& image() const { return newest_; }
  void restore(wire::Injected newest) { newest_ = std::move(newest); }

 private:
  void tell(Member worker, bool again, Work& work) const;

  Parts& parts_;
  wire::Injected newest_;          // number 0: there has been none
  std::optional<MonoTime> until_;  // empty: until the job's end
};

}  // namespace antdt::ctl::job
