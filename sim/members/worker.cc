#include "sim/members/worker.h"

#include <algorithm>

namespace antdt::sim {
namespace {

using std::chrono::microseconds;

// Until a collective that was aborted lets go of who waits in it.
constexpr Duration kLetsGo = microseconds(200);

}  // namespace

Worker::Worker(World& world, Surroundings& around, const JobShape& shape, Sabotage sabotage,
               Member member, std::uint32_t pid, std::string host, const HostClock& clock)
    : ClientProgram(world, around, member, pid, std::move(host), clock),
      shape_(shape),
      sabotage_(sabotage),
      machine_(shape.worker_config(member, pid)) {
  model_.tally.resize(shape.train_records);
}

std::string Worker::doing() const {
  return fmt::format("{}.{} on {}{}: generation {}, settled {}, step {}, phase {}, place {}, {}",
                     member_.worker, member_.attempt, host_, standing(), generation(), settled(),
                     step(), phase().phase, machine_.place(), machine_.state_name());
}

// --------------------------------------------------------- the training thread

void Worker::welcomed() { drive(worker::Started{}); }

// As the real thread takes orders: when nothing is under way.
void Worker::turn() {
  if (!alive() || driving_ || under_way_ || !core_.welcome()) return;
  drive({});
}

// Tells the machine what came of the operation, and does what it wants, until an operation is
// under way that takes time, or no order is left.
void Worker::drive(Answer input) {
  driving_ = true;
  while (alive()) {
    if (auto saved = std::exchange(saved_, std::nullopt)) tell(worker::Saved{std::move(*saved)});
    tell(worker::Heard{core_.known(), sigterm_, end_.over()});
    if (!machine_.ended() && !input && machine_.awaits_order()) input = next_order();
    if (!machine_.ended() && input) tell(*std::exchange(input, std::nullopt));
    input = perform_all();
    if (!input && (!machine_.awaits_order() || !core_.orders().has_next())) break;
  }
  driving_ = false;
  if (alive()) arm();
}

Worker::Answer Worker::next_order() {
  while (auto directive = core_.next_directive()) {
    if (auto order = worker::input_of(std::move(*directive))) return order;
  }
  const auto deadline = machine_.deadline();
  if (deadline && clock_.now() >= *deadline) return worker::TimePassed{};
  return {};
}

void Worker::tell(const worker::Input& input) { machine_.step(input, clock_.now(), wanted_); }

Worker::Answer Worker::perform_all() {
  Answer answer;
  worker::Effects effects;
  effects.swap(wanted_);
  for (worker::Effect& effect : effects) {
    if (!alive()) break;
    if (auto came = std::visit([this](auto& e) { return perform(e); }, effect)) {
      answer = std::move(came);
    }
  }
  effects.clear();
  wanted_.swap(effects);
  return answer;
}

void Worker::arm() {
  const auto deadline = machine_.deadline();
  if (!deadline || armed_ == deadline) return;
  armed_ = deadline;
  later(clock_.real(*deadline - clock_.now()), [this] {
    armed_.reset();
    turn();
  });
}

void Worker::answer_after(Duration delay, worker::Input input) {
  under_way_ = true;
  later(delay,
        [this, operation = ++operation_, input = std::move(input)] { answered(operation, input); });
}

void Worker::answered(std::uint64_t operation, worker::Input input) {
  if (operation != operation_ || !under_way_) return;
  under_way_ = in_ring_ = false;
  drive(std::move(input));
}

// ------------------------------------------------------------- what it waits in

std::uint64_t Worker::wait_in_ring() {
  under_way_ = in_ring_ = true;
  return ++operation_;
}

// The training thread wakes up, in an event of its own.
void Worker::ring_answered(std::uint64_t operation, worker::Input input) {
  later({}, [this, operation, input = std::move(input)] { answered(operation, input); });
}

void Worker::abort(Generation generation) {
  end_.end(generation);
  if (end_.over() && in_ring_ && ring_ != nullptr) break_ring();
}

void Worker::break_ring() {
  ring_->leave(rank_, false);
  later(kLetsGo, [this, operation = operation_] {
    answered(operation, worker::CollectiveBroke{"it was aborted"});
  });
}

void Worker::leave_ring(bool silently) {
  if (Ring* const ring = std::exchange(ring_, nullptr)) ring->leave(rank_, silently);
}

}  // namespace antdt::sim
