#include "sim/servers/ps_worker.h"

#include <utility>

namespace antdt::sim {
PsWorker::PsWorker(World& world, const Surroundings& around, const JobShape& shape,
                   Sabotage sabotage, const Place& place)
    : MachineProgram(world, around, shape, sabotage, place),
      group_(outside_of_group(), place.member) {}

std::string PsWorker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, version {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation(),
                     machine_.version(), phase().phase, machine_.place(), machine_.state_name());
}

// --------------------------------------------------------- the training thread

void PsWorker::turn() {
  if (alive() && wants_to_leave()) watch_leaving();
  MachineProgram::turn();
}

// A worker that has been asked to leave does not wait for servers for ever.
void PsWorker::watch_leaving() {
  if (std::exchange(leaves_, true)) return;
  later(clock_.real(worker::kLeaveGrace), [this] { abort(generation()); });
}

void PsWorker::abort(Generation generation) {
  end_.end(generation);
  if (end_.over()) later({}, [this] { group_.wake(); });
}

PsWorker::Answer PsWorker::next_order() {
  while (auto directive = core_.next_directive()) {
    if (auto order = ps_worker::input_of(std::move(*directive))) return order;
  }
  return {};
}

void PsWorker::tell_news() {
  const worker::Heard heard{core_.known(), sigterm_, end_.over()};
  if (heard.job.plan != plan_told_) {
    if (const auto plan = core_.orders().plan(heard.job.plan)) {
      plan_told_ = plan->version;
      tell(ps_worker::PlanHeld{*plan});
    }
  }
  if (ps::WorkerCalls* const calls = group_.calls()) {
    if (calls->pushes().said() != commit_told_) {
      commit_told_ = calls->pushes().said();
      tell(ps_worker::CommitSaid{commit_told_.phase, commit_told_.place});
    }
    while (const auto decided = calls->take_decision()) {
      tell(ps_worker::PushDecided{*decided, calls->take_hop()});
    }
  }
  if (group_.take_centre()) tell(ps_worker::CentreHere{});
  tell(heard);
}

PsWorker::Answer PsWorker::perform_one(ps_worker::Effect& effect) {
  return std::visit(
      [this](auto& e) {
        if constexpr (requires { group_.perform(e); }) {
          return group_.perform(e);
        } else {
          return perform(e);
        }
      },
      effect);
}

}  // namespace antdt::sim
