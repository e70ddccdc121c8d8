// Scripts that know nothing of AntDT (protocol "torchrun"), by what their tracers tell: the monitor
// compares their ranks, the report shows how far they are, and what hangs is named and ended.
#pragma once

#include <optional>
#include <string>

#include "core/wire/trace_messages.h"
#include "ctl/job/work.h"
#include "ctl/trace/traced_ranks.h"

namespace antdt::ctl::job {

struct Parts;

class Traced {
 public:
  explicit Traced(Parts& parts);

  void hear(Member member, const wire::Traced& said, Work& work);
  void hear(Member member, const wire::StackTold& told, Work& work);
  void release(Member member, Work& work);
  void tick(Work& work);

  // There are ranks to be watched.
  [[nodiscard]] bool any() const { return !ranks_.ranks().empty(); }
  [[nodiscard]] const trace::TracedRanks& ranks() const { return ranks_; }
  // The newest hang, also when it is over, and when it was found, in seconds of the job.
  struct Known {
    trace::Hang hang;
    double at_s = 0;
    std::optional<double> over_at_s = {};  // when they went on
    [[nodiscard]] bool over() const { return over_at_s.has_value(); }
    // The sentence about it, which says for how long they have waited by `now_s`.
    [[nodiscard]] std::string text(double now_s) const {
      return trace::told(hang, over_at_s.value_or(now_s) - at_s);
    }
  };
  [[nodiscard]] const std::optional<Known>& hang() const { return hang_; }

 private:
  void step(const trace::Input& input, Work& work);
  void carry_out(const trace::Effect& effect, Work& work);
  void say(const trace::Hang& hang, Work& work);
  void show_to_monitor(Work& work) const;

  Parts& parts_;
  trace::TracedRanks ranks_;
  std::optional<Known> hang_;
};

}  // namespace antdt::ctl::job
