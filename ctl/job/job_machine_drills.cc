// Drills: stragglers that an operator makes.
#include "ctl/job/job_machine.h"

namespace antdt::ctl {

void JobMachine::on(const in::Inject& e) {
  injected_ = {injected_.number + 1, e.order.rules, e.order.duration_ms, false};
  injected_until_.reset();
  if (e.order.duration_ms > 0) {
    injected_until_ = now_ + std::chrono::milliseconds(e.order.duration_ms);
  }
  image_dirty_ = true;
  note("inject",
       fmt::format("{} injects {}{}", e.order.who, e.order.rules,
                   e.order.duration_ms > 0 ? fmt::format(" for {} ms", e.order.duration_ms) : ""));
  for (const WorkerProcess& w : lifecycle_.workers()) {
    if (w.running()) tell_of_injection(w.member(), false);
  }
}

// Who comes later hears of what is left of it. How long it has lasted is not known
// after a restart: it begins again.
void JobMachine::tell_of_injection(Member worker, bool again) {
  if (injected_.number == 0) return;
  wire::Injected told = injected_;
  told.again = again;
  if (injected_until_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*injected_until_ - now_);
    if (left.count() <= 0) return;
    told.duration_ms = static_cast<std::uint64_t>(left.count());
  }
  send(worker, generation(), told);
}

}  // namespace antdt::ctl
