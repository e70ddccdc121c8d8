#include "sim/servers/ps_worker.h"

#include <utility>

namespace antdt::sim {
PsWorker::PsWorker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
                   Member member, std::uint32_t pid, std::string host, const HostClock& clock)
    : ClientProgram(world, around, member, pid, std::move(host), clock),
      shape_(shape),
      sabotage_(sabotage),
      machine_(shape.worker_config(member, pid)),
      group_(outside_of_group(), member) {}

std::string PsWorker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, version {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation(),
                     machine_.version(), phase().phase, machine_.place(), machine_.state_name());
}

// --------------------------------------------------------- the training thread

// As the real thread takes orders: when nothing is under way.
void PsWorker::turn() {
  if (alive() && wants_to_leave()) watch_leaving();
  if (!alive() || driving_ || under_way_ || !core_.welcome()) return;
  drive({});
}

// Who is to leave does not wait for servers for ever.
void PsWorker::watch_leaving() {
  if (std::exchange(leaves_, true)) return;
  later(clock_.real(worker::kLeaveGrace), [this] { abort(generation()); });
}

void PsWorker::abort(Generation generation) {
  end_.end(generation);
  if (end_.over()) later({}, [this] { group_.wake(); });
}

// Tells the machine what came of the operation, and does what it wants, until an operation is
// under way that takes time, or no order is left.
void PsWorker::drive(Answer input) {
  driving_ = true;
  while (alive()) {
    tell_news();
    if (!machine_.ended() && !input && machine_.awaits_order()) input = next_order();
    if (input) tell(*std::exchange(input, std::nullopt));
    input = perform_all();
    if (!input && (!machine_.awaits_order() || !core_.orders().has_next())) break;
  }
  driving_ = false;
}

PsWorker::Answer PsWorker::next_order() {
  while (auto directive = core_.next_directive()) {
    if (auto order = ps_worker::input_of(std::move(*directive))) return order;
  }
  return {};
}

void PsWorker::tell(const ps_worker::Input& input) {
  if (!machine_.ended()) machine_.step(input, clock_.now(), wanted_);
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
  tell(heard);
}

PsWorker::Answer PsWorker::perform_all() {
  Answer answer;
  ps_worker::Effects effects;
  effects.swap(wanted_);
  for (ps_worker::Effect& effect : effects) {
    if (!alive()) break;
    const auto perform_one = [this](auto& e) {
      if constexpr (requires { group_.perform(e); }) {
        return group_.perform(e);
      } else {
        return perform(e);
      }
    };
    if (auto came = std::visit(perform_one, effect)) answer = std::move(came);
  }
  effects.clear();
  wanted_.swap(effects);
  return answer;
}

// ---------------------------------------------------------- what takes its time

std::uint64_t PsWorker::begin_operation() {
  under_way_ = true;
  group_.stop_waiting();
  return ++operation_;
}

bool PsWorker::is_under_way(std::uint64_t operation) const {
  return under_way_ && operation == operation_;
}

void PsWorker::answered(std::uint64_t operation, ps_worker::Input input) {
  if (!is_under_way(operation)) return;
  under_way_ = false;
  group_.stop_waiting();
  drive(std::move(input));
}

void PsWorker::answer_after(Duration delay, std::function<Answer()> answer) {
  later(delay, [this, operation = begin_operation(), answer = std::move(answer)] {
    if (!is_under_way(operation)) return;
    if (auto input = answer()) answered(operation, std::move(*input));
  });
}

}  // namespace antdt::sim
