// What the run's history is told, as effects of the job.
#include <utility>

#include "ctl/job/job_machine.h"

namespace antdt::ctl {

void JobMachine::remember(RunHistory::Entries entries) {
  for (auto& entry : entries) out_->emplace_back(out::Remember{std::move(entry)});
}

void JobMachine::remember_steps(const wire::StepHistory& told, Step step) {
  RunHistory::Steps steps = history_.hear(told, step);
  if (!steps.refused.empty()) note("history", std::move(steps.refused));
  remember(std::move(steps.entries));
}

void JobMachine::remember_moment(bool ends) {
  if (!history_.moment_is_over(now_, ends)) return;
  const RunHistory::Standing stands{lifecycle_.seconds(), progress_.step(), samples_done(),
                                    progress_.recent_loss().value_or(0)};
  remember(history_.moment(stands, controller_.plan(), controller_.view(), now_));
}

void JobMachine::on(const in::HistoryKept& e) { history_.kept(e.told); }

}  // namespace antdt::ctl
