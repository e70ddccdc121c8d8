#include "trainer/client/client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <tuple>
#include <type_traits>
#include <variant>

#include "core/loop.h"
#include "core/transport/ipc_dealer.h"
#include "core/wire/dispatch.h"
#include "core/wire/packet.h"
#include "trainer/client/client_core.h"

namespace antdt::client {
namespace {

constexpr Duration kSendAgainAfter = std::chrono::milliseconds(10);
constexpr const char* kStartingUp = "startup";

// Decodes `body` as the alternative of Inbound whose kind the envelope names; empty for a kind that
// this version does not know.
template <class... Ts>
std::optional<Input> read_as_one_of(std::type_identity<std::variant<Ts...>> /*of*/,
                                    const wire::Envelope& envelope, const std::string& body) {
  std::optional<Input> event;
  std::ignore = wire::dispatch<Ts...>(envelope.kind, body, [&](auto decoded) {
    if (decoded) {
      event = MessageReceived{envelope.generation, envelope.seq, std::move(*decoded)};
    } else {
      event = UnreadableReceived{decoded.error().message};
    }
  });
  return event;
}
std::optional<Input> read_body(const wire::Envelope& envelope, const std::string& body) {
  return read_as_one_of(std::type_identity<Inbound>(), envelope, body);
}

class IpcLink final : public AgentLink {
 public:
  explicit IpcLink(transport::IpcDealer socket) : socket_(std::move(socket)) {}
  [[nodiscard]] transport::SendOutcome send(const wire::Packet& packet) override {
    return socket_.send(packet);
  }
  [[nodiscard]] std::optional<wire::Packet> receive() override { return socket_.receive(); }
  [[nodiscard]] int fd() const override { return socket_.fd(); }

 private:
  transport::IpcDealer socket_;
};

// The generation whose collective must be released, with those before it.
std::optional<Generation> released(const Effects& effects) {
  std::optional<Generation> generation;
  for (const Effect& effect : effects) {
    const auto* release = std::get_if<ReleaseCollective>(&effect);
    if (release != nullptr) generation = release->generation;
  }
  return generation;
}

}  // namespace

// `mutex` guards everything below it; the link and the loop belong to the message thread.
struct Client::State {
  State(Environment who, std::unique_ptr<AgentLink> agent)
      : environment(std::move(who)), link(std::move(agent)) {}
  ~State() {
    if (thread.joinable()) {
      loop.stop_from_any_thread();
      thread.join();
    }
    if (wake_fd >= 0) ::close(wake_fd);
  }

  [[nodiscard]] Status start();
  Effects step_locked(const Input& input);
  Effects decide_locked(const Input& input);
  void apply(const Input& input);
  void enqueue_locked(const Effects& effects);
  void wake() const;
  // Called on the message thread.
  void pump();
  void receive();
  void arm(std::optional<MonoTime> deadline);

  const Environment environment;
  wire::WorkerWelcome welcome;  // the first one; set before connect() returns
  SteadyClock clock;
  EventLoop loop{clock};
  const std::unique_ptr<AgentLink> link;
  int wake_fd = -1;
  std::thread thread;
  std::optional<TimerId> timer;

  mutable std::mutex mutex;
  std::condition_variable changed;
  ClientCore core;
  std::deque<wire::Packet> outbox;
  MonoTime armed_for = MonoTime::max();  // when the message thread wakes by itself
  std::function<void(Generation)> abort_handler;
  bool handling_abort = false;  // the message thread is inside the handler

  std::atomic<const char*> activity = kStartingUp;  // not guarded by the mutex
};

Status Client::State::start() {
  wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail_errno(ErrorKind::kIo, errno, "cannot make an eventfd");
  loop.watch_fd(wake_fd, [this] {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_fd, &count, sizeof count);
    pump();
  });
  loop.watch_fd(link->fd(), [this] { receive(); });
  apply(Greet{});
  thread = std::thread([this] { loop.run(); });
  return {};
}

void Client::State::enqueue_locked(const Effects& effects) {
  for (const Effect& effect : effects) {
    const auto* message = std::get_if<SendMessage>(&effect);
    if (message == nullptr) continue;
    const wire::Envelope envelope{{},
                                  environment.job,
                                  environment.self.worker,
                                  environment.self.attempt,
                                  message->generation,
                                  message->seq};
    std::visit([&](const auto& body) { outbox.push_back(wire::make_packet(envelope, body)); },
               message->body);
  }
}

Effects Client::State::decide_locked(const Input& input) {
  core.set_activity(activity.load(std::memory_order_relaxed));
  Effects effects;
  core.step(input, clock.now(), effects);
  enqueue_locked(effects);
  return effects;
}

Effects Client::State::step_locked(const Input& input) {
  Effects effects = decide_locked(input);
  const auto deadline = core.deadline();
  if (!outbox.empty() || (deadline && *deadline < armed_for)) wake();
  return effects;
}

void Client::State::apply(const Input& input) {
  const std::lock_guard lock(mutex);
  step_locked(input);
}

void Client::State::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd, &one, sizeof one);
}

void Client::State::pump() {
  std::unique_lock lock(mutex);
  decide_locked(TimePassed{});
  while (!outbox.empty()) {
    if (link->send(outbox.front()) != transport::SendOutcome::kSent) break;
    outbox.pop_front();
  }
  auto deadline = core.deadline();
  if (!outbox.empty()) deadline = clock.now() + kSendAgainAfter;
  armed_for = deadline.value_or(MonoTime::max());
  lock.unlock();
  changed.notify_all();  // bye() waits until the outbox is empty
  arm(deadline);
}

void Client::State::arm(std::optional<MonoTime> deadline) {
  if (timer) loop.cancel(*timer);
  timer.reset();
  if (!deadline) return;
  timer = loop.call_at(std::max(*deadline, clock.now()), [this] {
    timer.reset();
    pump();
  });
}

void Client::State::receive() {
  while (auto packet = link->receive()) {
    std::optional<Input> event;
    if (auto envelope = wire::open_envelope(*packet)) {
      event = read_body(*envelope, packet->body);
    } else {
      event = UnreadableReceived{envelope.error().message};
    }
    if (!event) continue;
    std::function<void(Generation)> handler;
    std::optional<Generation> aborted;
    {
      const std::lock_guard lock(mutex);
      aborted = released(step_locked(*event));
      if (aborted) handler = abort_handler;
      handling_abort = handler != nullptr;
    }
    if (!handler) continue;
    handler(*aborted);
    const std::lock_guard lock(mutex);
    handling_abort = false;
    changed.notify_all();
  }
  pump();
}

// ------------------------------------------------------------------- public

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const Environment& environment, Duration timeout) {
  ANTDT_TRY(auto socket, transport::IpcDealer::connect(environment.socket));
  return connect(environment, std::make_unique<IpcLink>(std::move(socket)), timeout);
}

Result<std::unique_ptr<Client>> Client::connect(const Environment& environment,
                                                std::unique_ptr<AgentLink> link, Duration timeout) {
  auto state = std::make_unique<State>(environment, std::move(link));
  ANTDT_RETURN_IF_ERROR(state->start());
  std::unique_lock lock(state->mutex);
  state->changed.wait_until(lock, state->clock.now() + timeout,
                            [&] { return state->core.welcome() || state->core.refusal(); });
  if (state->core.refusal()) return tl::unexpected(*state->core.refusal());
  if (!state->core.welcome()) {
    return fail(ErrorKind::kUnreachable,
                "no agent answered on {} within {:.1f} s: is antdtd running on this host, as the "
                "same user?",
                environment.socket, to_seconds(timeout));
  }
  state->welcome = *state->core.welcome();
  lock.unlock();
  return std::unique_ptr<Client>(new Client(std::move(state)));
}

Member Client::member() const { return state_->environment.self; }
const std::string& Client::job() const { return state_->environment.job; }
const std::string& Client::host() const { return state_->welcome.host; }
const std::string& Client::run_dir() const { return state_->welcome.run_dir; }
const std::string& Client::config_json() const { return state_->welcome.config_json; }

void Client::join(const wire::Join& join) { state_->apply(join); }
void Client::send_address(const wire::Address& address) { state_->apply(address); }
void Client::send_ready(const wire::Ready& ready) { state_->apply(ready); }

Result<std::optional<Directive>> Client::next_directive(Duration timeout) {
  std::unique_lock lock(state_->mutex);
  std::optional<Directive> directive;
  state_->changed.wait_until(lock, state_->clock.now() + timeout, [&] {
    if (!state_->core.refusal()) directive = state_->core.next_directive();
    return directive || state_->core.refusal();
  });
  if (state_->core.refusal()) return tl::unexpected(*state_->core.refusal());
  return directive;
}

void Client::set_abort_handler(std::function<void(Generation)> handler) {
  std::optional<Generation> waiting;
  {
    std::unique_lock lock(state_->mutex);
    state_->abort_handler = handler;
    // After this returns, the data that the previous handler uses may be destroyed.
    state_->changed.wait(lock, [&] { return !state_->handling_abort; });
    waiting = state_->core.orders().abort_waiting();
  }
  if (handler && waiting) handler(*waiting);
}

Generation Client::generation() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().current();
}

Known Client::known() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.known();
}
PlanVersion Client::held_plan() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().held_plan();
}
std::optional<wire::Plan> Client::plan(PlanVersion version) const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().plan(version);
}
std::optional<wire::PsRoster> Client::servers(Generation generation, std::uint64_t than) const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().servers(generation, than);
}
std::uint64_t Client::checkpoint_ordered() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.checkpoint_ordered();
}
std::optional<wire::Leave> Client::leave_requested() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().leave_requested();
}
wire::Injected Client::injected() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.injected();
}

bool Client::regroup_requested() const {
  const std::lock_guard lock(state_->mutex);
  return state_->core.orders().regroup_requested();
}

void Client::begin_phase(std::uint64_t phase) {
  const char* initial = kStartingUp;
  state_->activity.compare_exchange_strong(initial, "other");
  state_->apply(BeginPhase{phase});
}
void Client::set_hold(std::uint64_t records) { state_->apply(SetHold{records}); }

Result<Taken> Client::take(std::uint64_t max_records, Duration timeout) {
  if (max_records == 0) return fail(ErrorKind::kUsage, "take: asked for no record");
  std::unique_lock lock(state_->mutex);
  Taken taken;
  state_->changed.wait_until(lock, state_->clock.now() + timeout, [&] {
    if (state_->core.refusal()) return true;
    taken = state_->core.take(max_records);
    return taken.status != TakeStatus::kWait;
  });
  if (state_->core.refusal()) return tl::unexpected(*state_->core.refusal());
  if (taken.records > 0) state_->step_locked(TimePassed{});  // fetches if too few records are left
  return taken;
}

void Client::commit(std::uint64_t place) { state_->apply(Commit{place, std::nullopt}); }
void Client::commit(std::uint64_t place, wire::EvalPartial partial) {
  state_->apply(Commit{place, std::move(partial)});
}

void Client::give_back(std::uint64_t records) { state_->apply(GiveBack{records}); }

Result<bool> Client::given_back(Duration timeout) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, state_->clock.now() + timeout,
                             [&] { return state_->core.refusal() || !state_->core.gives_back(); });
  if (state_->core.refusal()) return tl::unexpected(*state_->core.refusal());
  return !state_->core.gives_back();
}

void Client::skip(std::vector<wire::SkippedRecords> records) {
  state_->apply(Skip{std::move(records)});
}

Result<bool> Client::skips_told(Duration timeout) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, state_->clock.now() + timeout,
                             [&] { return state_->core.refusal() || !state_->core.tells_skips(); });
  if (state_->core.refusal()) return tl::unexpected(*state_->core.refusal());
  return !state_->core.tells_skips();
}

void Client::report(const BatchTimes& times) { state_->apply(times); }
void Client::time_account(const wire::TimeAccount& account) { state_->apply(account); }
void Client::set_activity(const char* activity) {
  state_->activity.store(activity, std::memory_order_relaxed);
}
void Client::set_throttle(double share) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_throttle(share);
}
void Client::set_max_micro_batch(std::uint32_t records) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_max_micro_batch(records);
}
void Client::set_table_sums(const wire::TableSums& sums) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_table_sums(sums);
}
void Client::set_shadow(const wire::ShadowSums& sums) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_shadow(sums);
}
void Client::set_updates(const wire::UpdateSums& sums) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_updates(sums);
}
void Client::set_io(Io io) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_io(std::move(io));
}
void Client::set_traffic(wire::TrafficSums traffic) {
  const std::lock_guard lock(state_->mutex);
  state_->core.set_traffic(std::move(traffic));
}
void Client::checkpoint_begun(const wire::CheckpointBegun& begun) { state_->apply(begun); }
void Client::progress(const wire::Progress& progress) { state_->apply(progress); }
void Client::checkpoint_written(const wire::CheckpointWritten& written) { state_->apply(written); }

Tracing Client::tracing() { return Tracing(*state_); }

void Tracing::traced(const wire::Traced& traced) { client_.apply(traced); }
void Tracing::stack_told(const wire::StackTold& told) { client_.apply(told); }

Result<std::uint64_t> Tracing::stack_wanted(std::uint64_t than, Duration timeout) {
  std::unique_lock lock(client_.mutex);
  client_.changed.wait_until(lock, client_.clock.now() + timeout, [&] {
    return client_.core.refusal() || client_.core.stack_wanted() > than;
  });
  if (client_.core.refusal()) return tl::unexpected(*client_.core.refusal());
  return client_.core.stack_wanted();
}

void Client::bye(wire::Bye bye) {
  state_->apply(bye);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, state_->clock.now() + std::chrono::seconds(1),
                             [&] { return state_->outbox.empty(); });
}

}  // namespace antdt::client
