#include "ctl/job/subjects/injections.h"

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

void Injections::on(const InjectionOrdered& e, Work& work) {
  const wire::InjectRules& order = e.order;
  newest_ = {newest_.number + 1, order.rules, order.duration_ms, false};
  until_.reset();
  if (order.duration_ms > 0) until_ = work.now + std::chrono::milliseconds(order.duration_ms);
  work.save_image();
  work.note("inject",
            fmt::format("{} injects {}{}", order.who, order.rules,
                        order.duration_ms > 0 ? fmt::format(" for {} ms", order.duration_ms) : ""));
  for (const WorkerProcess& w : parts_.lifecycle.workers()) {
    if (w.running()) tell(w.member(), false, work);
  }
}

void Injections::tell(Member worker, bool again, Work& work) const {
  if (newest_.number == 0) return;
  wire::Injected told = newest_;
  told.again = again;
  if (until_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until_ - work.now);
    if (left.count() <= 0) return;
    told.duration_ms = static_cast<std::uint64_t>(left.count());
  }
  work.send(worker, parts_.group.generation(), told);
}

}  // namespace antdt::ctl::job
