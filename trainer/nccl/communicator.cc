#include "trainer/nccl/communicator.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/overloaded.h"
#include "trainer/nccl/faults.h"

namespace antdt::nccl {

using communicator::CommunicatorMachine;
using communicator::Effect;
using communicator::Input;

// What the object, its thread and, if that is stuck, the thread alone have in common.
struct Communicator::Shared {
  Shared(Parts own, communicator::Patience patience) : parts(std::move(own)), machine(patience) {}
  ~Shared() {
    for (const auto& [stream, event] : marks) parts.cuda->destroy_event(event);
    for (const Event event : spare) parts.cuda->destroy_event(event);
  }

  // A caller's request, and its answer.
  [[nodiscard]] Status ask(const Input& input);
  void want_abort();
  void work();

  // The next three are called with `mutex` held.
  void wait(std::unique_lock<std::mutex>& lock, MonoTime until);
  void step(const Input& input);
  [[nodiscard]] std::optional<Effect> next_call();

  [[nodiscard]] Input make(const Effect& call);
  [[nodiscard]] Input form_now();
  [[nodiscard]] Input enqueue_now();
  [[nodiscard]] Input poll_now();
  [[nodiscard]] Input mark_now();
  [[nodiscard]] Input query_now();
  [[nodiscard]] std::string last_error() {
    return text_or_empty(parts.library.get_last_error(comm));
  }
  [[nodiscard]] static std::string text_or_empty(const char* text) {
    return text == nullptr ? "" : text;
  }
  [[nodiscard]] Input returned(Code code) {
    const bool is_well = code == Code::kSuccess || code == Code::kInProgress;
    return communicator::Returned{code, is_well ? "" : last_error()};
  }

  const Parts parts;
  const SteadyClock clock;

  std::mutex mutex;  // of the next four; never held during a call
  std::condition_variable changed;
  CommunicatorMachine machine;
  communicator::Effects calls;  // at most one: the machine wants one at a time
  std::optional<Status> answer;

  // Written before a request, read by the thread that carries it out.
  UniqueId id{};
  int rank = 0, size = 0;
  Operation operation;

  // Of the thread alone.
  Comm comm = nullptr;
  // Of the streams in which something was enqueued since they were last seen done: their owner may
  // destroy them then.
  std::map<Stream, Event> marks;
  std::vector<Event> spare;  // of streams that were done
};

// ------------------------------------------------------------------- callers

void Communicator::Shared::step(const Input& input) {
  communicator::Effects effects;
  machine.step(input, clock.now(), effects);
  for (Effect& effect : effects) {
    if (auto* const told = std::get_if<communicator::Answer>(&effect)) {
      answer = std::move(told->status);
    } else {
      calls.push_back(std::move(effect));
    }
  }
  changed.notify_all();
}

void Communicator::Shared::wait(std::unique_lock<std::mutex>& lock, MonoTime until) {
  if (until == MonoTime::max()) {
    changed.wait(lock);
  } else if (changed.wait_until(lock, until) == std::cv_status::timeout) {
    step(communicator::TimePassed{});
  }
}

// Time passes here, too: the thread may be inside a call that does not return.
Status Communicator::Shared::ask(const Input& input) {
  std::unique_lock lock(mutex);
  answer.reset();
  step(input);
  while (!answer) {
    wait(lock, machine.deadline());
  }
  return *std::exchange(answer, std::nullopt);
}

void Communicator::Shared::want_abort() {
  const std::lock_guard lock(mutex);
  step(communicator::AbortWanted{});
}

// ------------------------------------------------------------------- the thread

std::optional<Effect> Communicator::Shared::next_call() {
  if (calls.empty()) return std::nullopt;
  Effect call = std::move(calls.front());
  calls.erase(calls.begin());
  return call;
}

void Communicator::Shared::work() {
  std::unique_lock lock(mutex);
  while (!machine.ended()) {
    if (const auto call = next_call()) {
      lock.unlock();
      const Input result = make(*call);
      lock.lock();
      step(result);
      continue;
    }
    wait(lock, machine.next());
  }
}

Input Communicator::Shared::make(const Effect& call) {
  const Library& nccl = parts.library;
  return std::visit(
      Overloaded{[&](const communicator::Form&) -> Input { return form_now(); },
                 [&](const communicator::Enqueue&) -> Input { return enqueue_now(); },
                 [&](const communicator::Poll&) -> Input { return poll_now(); },
                 [&](const communicator::MarkWork&) -> Input { return mark_now(); },
                 [&](const communicator::QueryWork&) -> Input { return query_now(); },
                 [&](const communicator::Finalize&) -> Input {
                   return returned(nccl.comm_finalize(comm));
                 },
                 [&](const communicator::Destroy&) -> Input {
                   static_cast<void>(nccl.comm_destroy(std::exchange(comm, nullptr)));
                   return communicator::Destroyed{};
                 },
                 [&](const communicator::Abort&) -> Input {
                   return communicator::Aborted{nccl.comm_abort(std::exchange(comm, nullptr))};
                 },
                 [](const communicator::Answer&) -> Input { return communicator::TimePassed{}; }},
      call);
}

// The device belongs to the thread.
Input Communicator::Shared::form_now() {
  if (auto used = parts.cuda->use(parts.device); !used) {
    return communicator::Returned{Code::kUnhandledCudaError, used.error().message};
  }
  Config config;
  return returned(parts.library.comm_init_rank_config(&comm, size, id, rank, &config));
}

Input Communicator::Shared::enqueue_now() {
  const Operation& it = operation;
  marks.try_emplace(it.stream, nullptr);
  switch (it.kind) {
    case Operation::Kind::kSum:
      return returned(parts.library.all_reduce(it.data, it.data, it.count, it.type, kSumOperation,
                                               comm, it.stream));
    case Operation::Kind::kSend:
      return returned(parts.library.send(it.data, it.count, it.type, it.peer, comm, it.stream));
    case Operation::Kind::kReceive:
      return returned(parts.library.recv(it.data, it.count, it.type, it.peer, comm, it.stream));
  }
  return communicator::Returned{Code::kInvalidArgument, "an unknown operation"};
}

Input Communicator::Shared::poll_now() {
  Code state{};
  if (const Code code = parts.library.comm_get_async_error(comm, &state); code != Code::kSuccess) {
    return returned(code);
  }
  const bool is_well = state == Code::kSuccess || state == Code::kInProgress;
  return communicator::Polled{state, is_well ? "" : last_error()};
}

Input Communicator::Shared::mark_now() {
  for (auto& [stream, event] : marks) {
    if (event == nullptr && !spare.empty()) {
      event = spare.back();
      spare.pop_back();
    }
    if (event == nullptr) {
      auto made = parts.cuda->make_event();
      if (!made) {
        return communicator::WorkQueried{communicator::WorkState::kFailed, made.error().message};
      }
      event = *made;
    }
    if (auto recorded = parts.cuda->record(event, stream); !recorded) {
      return communicator::WorkQueried{communicator::WorkState::kFailed, recorded.error().message};
    }
  }
  return query_now();
}

Input Communicator::Shared::query_now() {
  for (const auto& [stream, event] : marks) {
    const auto state = parts.cuda->query(event);
    if (!state) {
      return communicator::WorkQueried{communicator::WorkState::kFailed, state.error().message};
    }
    if (*state == Work::kRunning) {
      return communicator::WorkQueried{communicator::WorkState::kRunning};
    }
  }
  for (const auto& [stream, event] : marks) {
    if (event != nullptr) spare.push_back(event);
  }
  marks.clear();
  return communicator::WorkQueried{communicator::WorkState::kDone};
}

// ------------------------------------------------------------------- the object

Communicator::Communicator(Parts parts, communicator::Patience patience)
    : shared_(std::make_shared<Shared>(std::move(parts), patience)),
      thread_([shared = shared_] { shared->work(); }) {}

Communicator::~Communicator() {
  static_cast<void>(close());
  if (is_stuck()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

Status Communicator::form(const UniqueId& id, std::uint32_t rank, std::uint32_t size) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->id = id;
    shared_->rank = static_cast<int>(rank);
    shared_->size = static_cast<int>(size);
  }
  return shared_->ask(communicator::FormWanted{});
}

Status Communicator::enqueue(const Operation& operation) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->operation = operation;
  }
  const char* const name = operation.kind == Operation::Kind::kSum    ? "the all-reduce"
                           : operation.kind == Operation::Kind::kSend ? "sending"
                                                                      : "receiving";
  return shared_->ask(
      communicator::EnqueueWanted{fmt::format("{} of {} elements by NCCL", name, operation.count)});
}

Status Communicator::close() { return shared_->ask(communicator::CloseWanted{}); }

Status Communicator::finish() { return shared_->ask(communicator::FinishWanted{}); }

void Communicator::abort() { shared_->want_abort(); }

bool Communicator::is_stuck() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->machine.state() == CommunicatorMachine::State::kStuck;
}

}  // namespace antdt::nccl
