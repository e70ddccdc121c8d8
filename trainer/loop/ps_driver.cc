#include "trainer/loop/ps_driver.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/log/log.h"
#include "trainer/loop/connected.h"
#include "trainer/loop/leave_watch.h"
#include "trainer/loop/say.h"
#include "trainer/ps/calls/row_shares.h"
#include "trainer/ps/placement.h"
#include "trainer/worker/habits.h"

namespace antdt::trainer {
namespace {

worker::WorkerConfig config_of(const PsTools& tools, const PsDriver::Parts& parts) {
  worker::WorkerConfig config;
  config.self = tools.client.member().worker;
  config.join.pid = static_cast<std::uint32_t>(getpid());
  config.join.data = parts.data;
  config.join.key = parts.keys.public_z85;
  config.join.device = parts.device;
  config.join.fewest_servers = ps::fewest_servers(tools.model.first_values());
  config.has_train_data = parts.train != nullptr;
  config.has_eval_data = parts.eval != nullptr;
  config.eval_batch = parts.eval_batch;
  config.shadow = parts.shadow;
  return config;
}

ps_worker::Input failure(const Error& error) {
  if (error.kind == ErrorKind::kAborted) return ps_worker::ServersLost{error.message};
  return worker::WorkFailed{error};
}
template <class T>
ps_worker::Input input_of(Result<T> result) {
  return result ? ps_worker::Input(std::move(*result)) : failure(result.error());
}

}  // namespace

PsDriver::PsDriver(PsTools tools, Parts parts)
    : tools_(tools), parts_(std::move(parts)), machine_(config_of(tools_, parts_)) {}

Result<int> PsDriver::run() {
  const Connected connected(tools_.client, tools_.guard, tools_.account);
  const LeaveWatch watch([this] { return tools_.stop || tools_.client.leave_requested(); },
                         worker::kLeaveGrace, [this] { tools_.guard.end(); });
  auto code = live();
  tools_.prefetcher.stop();
  tools_.guard.release();
  if (code) tools_.client.bye({0, tools_.account.seconds(), {}});
  return code;
}

Result<int> PsDriver::live() {
  tell(worker::Started{});
  while (true) {
    auto answer = perform_all();
    if (end_) return *end_;
    if (!answer) answer = next_order();
    tell_news();
    tell(std::move(*answer));
  }
}

void PsDriver::tell(ps_worker::Input input) {
  if (!machine_.ended()) machine_.step(input, tools_.clock.now(), wanted_);
}

void PsDriver::tell_news() {
  const worker::Heard heard{tools_.client.known(), tools_.stop, tools_.guard.over()};
  if (heard.job.plan != plan_told_) {
    if (auto plan = tools_.client.plan(heard.job.plan)) {
      plan_told_ = plan->version;
      tell(ps_worker::PlanHeld{std::move(*plan)});
    }
  }
  if (link_ && link_->said() != commit_told_) {
    commit_told_ = link_->said();
    tell(ps_worker::CommitSaid{commit_told_.phase, commit_told_.place});
  }
  while (link_) {
    auto decided = link_->take_decision();
    if (!decided) break;
    tell(ps_worker::PushDecided{std::move(*decided), link_->take_hop()});
  }
  tell_centre();
  tell(heard);
}

void PsDriver::tell_centre() {
  if (!machine_.shadow()) return;
  tools_.client.set_shadow(machine_.shadow()->sums());
  if (!link_ || !centre_is_here()) return;
  auto pulled = link_->take(*std::exchange(centre_pull_, std::nullopt));
  if (!pulled) {
    failed_ = pulled.error();
    return;
  }
  centre_ = std::move(*pulled);
  tell(ps_worker::CentreHere{});
}

ps_worker::Input PsDriver::next_order() {
  auto directive = tools_.client.next_directive(worker::kTurn);
  if (!directive) return worker::WorkFailed{directive.error()};
  tools_.client.time_account(tools_.account.seconds());
  if (!*directive) return worker::TimePassed{};
  return ps_worker::input_of(std::move(**directive)).value_or(worker::TimePassed{});
}

std::optional<ps_worker::Input> PsDriver::perform_all() {
  std::optional<ps_worker::Input> answer;
  ps_worker::Effects effects;
  effects.swap(wanted_);
  const auto perform_one = [&](auto& effect) {
    if constexpr (std::is_void_v<decltype(perform(effect))>) {
      perform(effect);
    } else {
      answer = failed_ ? failure(*std::exchange(failed_, std::nullopt)) : perform(effect);
    }
  };
  for (ps_worker::Effect& effect : effects) std::visit(perform_one, effect);
  effects.clear();
  wanted_.swap(effects);  // swapped, so that its memory is reused
  return answer;
}

void PsDriver::perform(worker::Send& effect) { say(tools_.client, tools_.account, effect); }

void PsDriver::perform(const worker::SpendTime& effect) { tools_.account.enter(effect.use); }

void PsDriver::perform(const worker::Exit& effect) { end_ = effect.code; }

void PsDriver::perform(worker::GiveUp& effect) { end_ = tl::unexpected(std::move(effect.error)); }

// ------------------------------------------------------------------- the servers

void PsDriver::perform(const ps_worker::LeaveServers& effect) {
  if (!effect.why.empty()) {
    log_warn("generation {} is over for {}: {}", machine_.generation(),
             tools_.client.member().worker, effect.why);
  }
  tools_.guard.release();
  link_.reset();
  next_.reset();
  centre_pull_.reset();
  failed_.reset();
  commit_told_ = {};
}

ps::Peers PsDriver::peers_of(const ps_worker::OpenServers& effect) const {
  const wire::PsRoster& roster = effect.roster;
  ps::Peers peers;
  peers.generation = effect.generation;
  peers.servers = roster.servers;
  peers.keys = roster.keys;
  peers.own = parts_.keys;
  peers.send_delay = [link = tools_.injected.link()](std::size_t bytes) {
    return link->delay(bytes);
  };
  peers.others = roster.others;
  peers.other_keys = roster.other_keys;
  peers.number = roster.number;
  // A server that was heard once is not given up here: the job daemon announces when a server is
  // lost.
  peers.newer = [&client = tools_.client, generation = effect.generation](std::uint64_t than) {
    return client.servers(generation, than);
  };
  return peers;
}

Result<ps_worker::ServersOpened> PsDriver::open(const ps_worker::OpenServers& effect) {
  tools_.guard.begin(effect.generation);
  ps::Peers peers = peers_of(effect);
  ANTDT_TRY(peers.consistency, ps::consistency_of(effect.roster.sync));
  ANTDT_TRY(link_, ps::WorkerLink::connect(tools_.context, peers, tools_.client.member()));
  tools_.guard.hold(link_);
  ps_worker::ServersOpened opened;
  ANTDT_TRY(opened.version, link_->open({parts_.seed, tools_.model.tables()}));
  ANTDT_RETURN_IF_ERROR(link_->put(tools_.model.first_values()));
  if (machine_.shadow() != nullptr) ANTDT_RETURN_IF_ERROR(begin_replica());
  return opened;
}

Status PsDriver::begin_replica() {
  DenseReplica& replica = *tools_.model.replica();
  ANTDT_TRY(const auto centre, link_->pull({replica.centre_rows()}, 0));
  replica.begin(centre.values.front());
  return {};
}

ps_worker::Input PsDriver::perform(const ps_worker::OpenServers& effect) {
  return input_of(open(effect));
}

// Answers of servers before a decision, or before the centre, do not concern the machine.
ps_worker::Input PsDriver::perform(const ps_worker::AwaitServers&) {
  while (!link_->has_decision() && !centre_is_here()) {
    const Status answered = link_->wait();
    if (!answered) return failure(answered.error());
  }
  return ps_worker::ServersAnswered{};
}

ps_worker::Input PsDriver::perform(const ps_worker::SayIdle&) {
  const auto decided = link_->idle();
  if (!decided) return failure(decided.error());
  return ps_worker::SaidIdle{*decided};
}

ps_worker::Input PsDriver::perform(const ps_worker::SettleServers&) {
  const auto decided = link_->settle();
  if (!decided) return failure(decided.error());
  return ps_worker::ServersSettled{*decided};
}

// ------------------------------------------------------------------- records

void PsDriver::perform(const worker::StartReading& effect) {
  const bool training = effect.data == worker::Data::kTrain;
  tools_.prefetcher.start(training ? *parts_.train : *parts_.eval);
  if (training) tools_.injected.training_began();
}

void PsDriver::perform(const worker::StopReading&) {
  tools_.prefetcher.stop();
  next_.reset();
}

Result<data::Batch> PsDriver::take(const ps_worker::TakeBatch& effect) {
  if (effect.wait != ps_worker::TakeBatch::Wait::kNot) {
    return tools_.prefetcher.next(effect.records, effect.patience);
  }
  auto at_hand = tools_.prefetcher.next_at_hand(effect.records);
  if (!at_hand) return data::Batch{};
  return data::Batch{client::TakeStatus::kData, std::move(*at_hand)};
}

ps_worker::Input PsDriver::perform(const ps_worker::TakeBatch& effect) {
  const MonoTime asked = tools_.clock.now();
  auto batch = take(effect);
  if (!batch) return failure(batch.error());
  ps_worker::BatchTaken taken;
  taken.status = batch->status;
  if (taken.status != client::TakeStatus::kData) return taken;
  tools_.account.enter(TimeUse::kCompute);
  const bool reads = effect.wait == ps_worker::TakeBatch::Wait::kForData;
  const MonoTime began = reads ? asked : tools_.clock.now();
  tools_.injected.after_data(began, effect.push);
  taken.data = tools_.clock.now() - began;
  taken.records = batch->examples.count;
  next_ = Batch{};
  next_->rows = tools_.model.rows_of(batch->examples);
  next_->examples = std::move(batch->examples);
  return taken;
}

ps_worker::Input PsDriver::perform(const worker::AwaitRecords& effect) {
  std::this_thread::sleep_for(effect.time);
  return worker::RecordsAwaited{};
}

ps_worker::Input PsDriver::perform(const ps_worker::AwaitGivenBack& effect) {
  const auto all = tools_.client.given_back(effect.patience);
  if (!all) return failure(all.error());
  const Status heard = link_->advance();
  if (!heard) return failure(heard.error());
  return ps_worker::GivenBack{*all};
}

// ------------------------------------------------------------------- a batch

void PsDriver::perform(const ps_worker::SayPull& effect) {
  const auto pull = link_->say_pull(next_->rows, effect.clock);
  if (pull) {
    next_->pull = *pull;
  } else {
    failed_ = pull.error();
  }
}

void PsDriver::perform(const ps_worker::ForgetPull&) {
  if (next_->pull) link_->forget(*next_->pull);
  next_->pull.reset();
}

void PsDriver::perform(const ps_worker::SayCentrePull&) {
  const auto pull = link_->say_pull({tools_.model.replica()->centre_rows()}, 0);
  if (pull) {
    centre_pull_ = *pull;
  } else {
    failed_ = pull.error();
  }
}

void PsDriver::perform(const worker::SetRate& effect) {
  tools_.model.replica()->set_rate(effect.factor);
}

void PsDriver::perform(const ps_worker::BeginBatch&) {
  batch_ = std::move(*next_);
  next_.reset();
}

ps_worker::Input PsDriver::perform(const ps_worker::AwaitRows&) {
  while (!link_->is_here(*next_->pull)) {
    const Status answered = link_->wait();
    if (!answered) return failure(answered.error());
    if (link_->has_decision()) return ps_worker::ServersAnswered{};
  }
  auto pulled = link_->take(*std::exchange(next_->pull, std::nullopt));
  if (!pulled) return failure(pulled.error());
  next_->pulled = std::move(*pulled);
  const auto [oldest, newest] = std::ranges::minmax(next_->pulled.versions);
  return ps_worker::RowsPulled{oldest, newest, next_->pulled.clock};
}

// Answers that have come are handled now, so that their consequences need not wait for the end of
// the computation.
Result<ps_worker::BatchComputed> PsDriver::compute(const ps_worker::ComputeBatch& effect) {
  ANTDT_RETURN_IF_ERROR(link_->advance());
  const MonoTime began = tools_.clock.now();
  ANTDT_TRY(batch_.computed,
            tools_.model.compute(batch_.examples, batch_.rows, batch_.pulled.values));
  tools_.injected.after_compute(began, effect.push, batch_.examples.count);
  const BatchSums& sums = batch_.computed.sums;
  const ps_worker::BatchComputed done{sums.weight, sums.loss, tools_.clock.now() - began};
  ANTDT_RETURN_IF_ERROR(link_->advance());
  return done;
}

ps_worker::Input PsDriver::perform(const ps_worker::ComputeBatch& effect) {
  return input_of(compute(effect));
}

ps_worker::Input PsDriver::perform(const ps_worker::SayPush& effect) {
  std::vector<ps::TableGradient> gradients;
  if (effect.records) gradients = std::move(batch_.computed.gradients);
  if (effect.exchange) {
    gradients.push_back(tools_.model.replica()->exchange(centre_.values.front()));
  }
  const ps::WorkerLink::Pulled& from = effect.records ? batch_.pulled : centre_;
  const Status said = link_->say_push(gradients, from, effect.commit);
  if (!said) return failure(said.error());
  return ps_worker::PushSaid{};
}

std::vector<ps::TableKeys> PsDriver::evaluated_rows(const data::Examples& batch) const {
  std::vector<ps::TableKeys> rows = tools_.model.rows_of(batch);
  if (const DenseReplica* const replica = tools_.model.replica()) {
    rows.push_back(replica->centre_rows());
  }
  return rows;
}

Result<worker::BatchEvaluated> PsDriver::evaluate(const worker::EvaluateBatch& effect) {
  ANTDT_TRY(const data::Batch batch, tools_.prefetcher.next(effect.records, effect.patience));
  worker::BatchEvaluated done;
  done.status = batch.status;
  if (batch.status != client::TakeStatus::kData) return done;
  tools_.account.enter(TimeUse::kCompute);
  const std::vector<ps::TableKeys> rows = evaluated_rows(batch.examples);
  ps::WorkerLink::Pulled pulled;
  {
    const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
    ANTDT_TRY(pulled, link_->pull(rows, 0));
  }
  ANTDT_TRY(done.partial, tools_.model.evaluate(batch.examples, rows, pulled.values));
  done.records = batch.examples.count;
  tools_.client.time_account(tools_.account.seconds());
  return done;
}

ps_worker::Input PsDriver::perform(const worker::EvaluateBatch& effect) {
  return input_of(evaluate(effect));
}

}  // namespace antdt::trainer
