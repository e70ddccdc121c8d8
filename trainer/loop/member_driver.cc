#include "trainer/loop/member_driver.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <set>
#include <thread>
#include <type_traits>

#include "core/check.h"
#include "core/log/log.h"
#include "core/os/net.h"
#include "trainer/loop/connected.h"
#include "trainer/loop/say.h"
#include "trainer/sync/ds_sync/groups.h"
#include "trainer/sync/gaia/update.h"
#include "trainer/worker/habits.h"

namespace antdt::trainer {
namespace {

using worker::Input;
using worker::TimeUse;

// How soon a member that waits for the job daemon notices that its generation is over.
constexpr Duration kSkipsTurn = std::chrono::milliseconds(20);
constexpr Duration kTrafficEvery = std::chrono::seconds(1);

worker::WorkerConfig config_of(const Tools& tools, const MemberDriver::Parts& parts) {
  worker::WorkerConfig config;
  config.self = tools.client.member().worker;
  config.join.pid = static_cast<std::uint32_t>(getpid());
  config.join.data = parts.data;
  config.join.device = parts.device;
  config.join.settles_differences = true;
  config.join.key = parts.key;
  config.has_train_data = parts.train != nullptr;
  config.has_eval_data = parts.eval != nullptr;
  config.eval_batch = parts.eval_batch;
  config.begins_alike = parts.begins_alike;
  config.exchange = parts.exchange;
  config.stages_rows = parts.rows != nullptr;
  if (parts.sharing) config.sharing = parts.sharing->rules;
  return config;
}

// What users are told beside the collective: ", ds-sync: 3 groups a step, all pairs in 4 steps", or
// ", gaia: 2 domains".
std::string in_words(const worker::ExchangeRules& exchange, const Collective& collective,
                     const std::vector<wire::RosterMember>& members) {
  if (std::holds_alternative<worker::Gaia>(exchange)) {
    std::set<std::string> domains;
    for (const wire::RosterMember& member : members) domains.insert(member.domain);
    return domains.size() == 1 ? ", gaia: one domain"
                               : fmt::format(", gaia: {} domains", domains.size());
  }
  const auto* const ds_sync = std::get_if<worker::DsSync>(&exchange);
  if (ds_sync == nullptr || collective.size() < 2) return {};
  const sync::ds_sync::GroupSchedule schedule(collective.size(), ds_sync->seed);
  const std::size_t groups = schedule.groups(Step{0}).size();
  return groups == 1 ? ", ds-sync: one group of all"
                     : fmt::format(", ds-sync: {} groups a step, all pairs in {} steps", groups,
                                   schedule.cycle());
}

}  // namespace

MemberDriver::MemberDriver(Tools tools, Parts parts)
    : tools_(tools),
      parts_(std::move(parts)),
      machine_(config_of(tools_, parts_)),
      writer_(tools_.client, parts_.io_patience) {}

Result<int> MemberDriver::run() {
  const Connected connected(tools_.client, tools_.guard, tools_.account);
  auto code = live();
  tools_.prefetcher.stop();
  writer_.give_up("its writer leaves the job");
  report_traffic();
  if (code) tools_.client.bye({0, tools_.account.seconds(), {}});
  return code;
}

Result<int> MemberDriver::live() {
  if (std::holds_alternative<worker::DsSync>(parts_.exchange)) {
    ANTDT_RETURN_IF_ERROR(tools_.engine.can_mix());
  }
  if (std::holds_alternative<worker::Gaia>(parts_.exchange)) {
    ANTDT_RETURN_IF_ERROR(tools_.engine.can_exchange());
  }
  tell(worker::Started{});
  while (true) {
    auto answer = perform_all();
    if (end_) return *end_;
    if (!answer) answer = next_order();
    if (auto written = saves_.take()) tell(worker::Saved{std::move(*written)});
    tell(heard());
    if (!machine_.ended()) tell(std::move(*answer));
  }
}

void MemberDriver::report_traffic() {
  tools_.client.set_traffic(traffic_.sums());
  traffic_told_at_ = tools_.clock.now();
}

void MemberDriver::tell(Input input) { machine_.step(input, tools_.clock.now(), wanted_); }

worker::Heard MemberDriver::heard() const {
  const EndOfTraining* const end = tools_.end_of_training;
  return {tools_.client.known(), tools_.stop, tools_.guard.over(),
          end == nullptr ? std::string() : end->reason()};
}

bool MemberDriver::program_ends() const {
  const EndOfTraining* const end = tools_.end_of_training;
  return end != nullptr && !end->reason().empty() && machine_.may_end();
}

Input MemberDriver::next_order() {
  auto directive = tools_.client.next_directive(worker::kTurn);
  if (!directive) return worker::WorkFailed{directive.error()};
  tools_.client.time_account(tools_.account.seconds());
  if (!*directive) return worker::TimePassed{};
  return worker::input_of(std::move(**directive)).value_or(worker::TimePassed{});
}

std::optional<Input> MemberDriver::perform_all() {
  std::optional<Input> answer;
  worker::Effects effects;
  effects.swap(wanted_);
  const auto perform_one = [&](auto& effect) {
    if constexpr (std::is_void_v<decltype(perform(effect))>) {
      perform(effect);
    } else {
      answer = perform(effect);
    }
  };
  for (worker::Effect& effect : effects) {
    try {
      std::visit(perform_one, effect);
    } catch (const std::exception& thrown) {
      // After the machine's end, why it gave up is still to be performed.
      if (machine_.ended()) continue;
      std::string why = fmt::format("the training cannot go on here: {}", thrown.what());
      answer = worker::WorkFailed{{ErrorKind::kInternal, std::move(why)}};
      break;
    }
  }
  effects.clear();
  wanted_.swap(effects);  // swapped, so that its memory is reused
  return answer;
}

// ------------------------------------------------------------------- what is said

void MemberDriver::perform(worker::Send& effect) { say(tools_.client, tools_.account, effect); }

void MemberDriver::perform(const worker::SpendTime& effect) { tools_.account.enter(effect.use); }

void MemberDriver::perform(const worker::Exit& effect) { end_ = effect.code; }

void MemberDriver::perform(worker::GiveUp& effect) {
  end_ = tl::unexpected(std::move(effect.error));
}

// ------------------------------------------------------------------- the collective

void MemberDriver::perform(const worker::LeaveCollective& effect) {
  if (!effect.why.empty()) {
    log_warn("generation {} is over for {}: {}", machine_.generation(),
             tools_.client.member().worker, effect.why);
  }
  tools_.guard.release();
  if (parts_.rows != nullptr) parts_.rows->leave();
  share_link_.reset();
  groups_.clear();
  collective_.reset();
  traffic_.end();
  report_traffic();
  builder_.reset();
}

Input MemberDriver::perform(const worker::BuildCollective& effect) {
  tools_.guard.begin(effect.generation);
  auto made = parts_.make_collective({effect.rank, effect.size, effect.holds_base});
  if (!made) return worker::group_failed(made.error());
  builder_ = std::move(*made);
  tools_.guard.hold(builder_);
  MemberAddress own = builder_->address();
  return worker::CollectiveBuilt{{std::move(own.at), std::move(own.sharing)}};
}

Input MemberDriver::perform(const worker::ConnectCollective& effect) {
  const auto secret = crypto::Secret::of(effect.form.secret);
  if (!secret) {
    return worker::CollectiveBroke{fmt::format(
        "the job daemon gave generation {} no secret with which its members could know each "
        "other: install the same release of AntDT on all hosts",
        machine_.generation())};
  }
  std::vector<MemberAddress> addresses;
  std::vector<TrafficAccount::Place> places;
  std::vector<drill::Target> peers;
  for (const wire::RosterMember& member : effect.members) {
    addresses.push_back({member.at, member.sharing});
    places.push_back({member.host, member.domain});
    peers.push_back({.worker = member.worker, .host = member.host, .domain = member.domain});
  }
  const GroupKey key{*secret, tools_.client.job(), machine_.generation()};
  const std::string host = host_of(builder_->address().at);
  tools_.injected.link()->know(std::move(peers));
  auto connected = builder_->connect(addresses, key);
  builder_.reset();
  expected_ = {};
  if (!connected) return worker::group_failed(connected.error());
  collective_ = std::move(*connected);
  tools_.guard.hold(collective_);
  traffic_.begin(collective_->ledger(), collective_->rank(), places);
  const Status sharing = connect_sharing(host, key);
  if (!sharing) return worker::group_failed(sharing.error());
  const std::string collective =
      collective_->description() + in_words(parts_.exchange, *collective_, effect.members);
  if (!collective.empty()) log_debug("collective: {}", collective);
  return worker::CollectiveConnected{collective};
}

// ------------------------------------------------------------------- a step

void MemberDriver::perform(const worker::StartReading& effect) {
  const bool training = effect.data == worker::Data::kTrain;
  tools_.engine.phase_began(machine_.phase(), *collective_);
  tools_.prefetcher.start(training ? *parts_.train : *parts_.eval);
  if (training) tools_.injected.training_began();
}

void MemberDriver::perform(const worker::StopReading&) {
  tools_.prefetcher.stop();
  tools_.engine.phase_ended(machine_.settled());
}

void MemberDriver::perform(const worker::SetRate& effect) {
  rate_ = effect.factor;
  tools_.engine.set_rate(effect.factor);
}

Input MemberDriver::perform(const worker::Mix& effect) {
  const CountedAs parameters(collective_->ledger(), Traffic::kParameters);
  const auto mix = [&]() -> Status {
    ANTDT_TRY(Collective* const group, groups_.of(*collective_, effect.group));
    return tools_.engine.mix(*group);
  };
  const Status done = mix();
  if (!done) return worker::group_failed(done.error());
  return worker::Mixed{};
}

Result<DomainLinks> MemberDriver::links_of(const std::vector<worker::DomainRanks>& domains) {
  DomainLinks links;
  std::vector<std::uint32_t> leaders;
  const std::uint32_t rank = collective_->rank();
  for (const worker::DomainRanks& domain : domains) {
    links.domains.push_back(domain.domain);
    leaders.push_back(domain.ranks.front());
    if (std::ranges::find(domain.ranks, rank) == domain.ranks.end()) continue;
    links.own = domain.domain;
    ANTDT_TRY(Collective* const within, groups_.of(*collective_, domain.ranks));
    if (domain.ranks.size() > 1) links.within = within;
  }
  const bool leads = std::ranges::find(leaders, rank) != leaders.end();
  if (leads && leaders.size() > 1) {
    ANTDT_TRY(links.across, groups_.of(*collective_, leaders));
  }
  return links;
}

Input MemberDriver::perform(const worker::ExchangeUpdates& effect) {
  const CountedAs parameters(collective_->ledger(), Traffic::kParameters);
  const auto exchange = [&]() -> Status {
    ANTDT_TRY(DomainLinks links, links_of(effect.domains));
    links.expected = &expected_;
    const float threshold = sync::gaia::threshold_at(effect.threshold, rate_);
    return tools_.engine.exchange_updates(links,
                                          {effect.step, effect.whole, threshold, effect.visits});
  };
  const wire::UpdateSums before = tools_.engine.update_sums();
  const Status done = exchange();
  if (!done) return worker::group_failed(done.error());
  const wire::UpdateSums sums = tools_.engine.update_sums();
  tools_.client.set_updates(sums);
  const std::uint64_t others = effect.domains.size() - 1;
  return worker::UpdatesExchanged{(sums.bytes - before.bytes) / others,
                                  (sums.dense_bytes - before.dense_bytes) / others};
}

void MemberDriver::perform(const worker::BeginStep& effect) {
  if (effect.local) return tools_.engine.begin_local_step(*collective_);
  Collective* members = collective_.get();
  if (!effect.sums_with.empty()) {
    // The exchange of updates before has connected them.
    const auto domain = groups_.of(*collective_, effect.sums_with);
    ANTDT_CHECK(domain.has_value(), "a domain that exchanged updates is no group: {}",
                domain.error().message);
    members = *domain;
  }
  tools_.engine.begin_step(*members);
}

void MemberDriver::perform(const worker::DropStep&) {
  if (parts_.rows != nullptr) parts_.rows->drop();
  tools_.engine.discard();
}

void MemberDriver::perform(const worker::AbandonStep&) {
  collective_->abort();
  if (parts_.rows != nullptr) parts_.rows->drop();
  static_cast<void>(tools_.engine.finish_reduction());
}

Input MemberDriver::perform(const worker::ComputeMicroBatch& effect) {
  if (program_ends()) return worker::TrainingEnded{};
  const MonoTime began = tools_.clock.now();
  auto batch = tools_.prefetcher.next(effect.records, effect.patience);
  if (!batch) return worker::WorkFailed{batch.error()};
  worker::MicroBatchComputed done{batch->status};
  const bool has_data = batch->status == client::TakeStatus::kData;
  if (has_data) tools_.injected.after_data(began, effect.step.value);
  const MonoTime got = tools_.clock.now();
  done.data = got - began;
  if (!has_data) return done;
  const Status pulled = pull(batch->examples);
  if (!pulled) return worker::rows_failed(pulled.error());
  if (parts_.rows != nullptr) done.rows = tools_.clock.now() - got;
  tools_.account.enter(TimeUse::kCompute);
  const Status computed = compute(batch->examples, effect.last, effect.step, done);
  if (!computed) return worker::WorkFailed{computed.error()};
  return done;
}

Status MemberDriver::compute(const data::Examples& examples, bool last, Step step,
                             worker::MicroBatchComputed& done) {
  const MonoTime began = tools_.clock.now();
  done.records = static_cast<std::uint32_t>(examples.count);
  ANTDT_TRY(const auto sums, tools_.engine.compute(examples, last));
  if (parts_.rows != nullptr) parts_.rows->add(tools_.engine.hosted_rows()->gradients());
  const MonoTime computed = tools_.clock.now();
  tools_.injected.after_compute(began, step.value, done.records);
  const MonoTime now = tools_.clock.now();
  done.compute = sums.device_time ? *sums.device_time + (now - computed) : now - began;
  if (const std::uint32_t most = tools_.engine.max_micro_batch(); most != 0) {
    tools_.client.set_max_micro_batch(most);
  }
  done.weight = sums.weight;
  done.loss = sums.loss;
  done.visit = sums.visit;
  for (const auto& [index, reason] : sums.skipped) done.skipped.push_back({index, reason});
  return {};
}

Input MemberDriver::perform(const worker::Reduce&) {
  if (program_ends()) return worker::TrainingEnded{};
  const Status reduced = tools_.engine.finish_reduction();
  if (!reduced) return worker::group_failed(reduced.error());
  tools_.client.set_table_sums(tools_.engine.table_sums());
  return worker::Reduced{};
}

Input MemberDriver::perform(const worker::AwaitSkipsTold&) {
  while (true) {
    auto told = tools_.client.skips_told(kSkipsTurn);
    if (!told) return worker::WorkFailed{told.error()};
    if (*told) return worker::SkipsTold{};
    if (tools_.guard.over()) return worker::CollectiveBroke{"the generation is over"};
  }
}

Input MemberDriver::perform(const worker::GatherSlots& effect) {
  if (tools_.clock.now() - traffic_told_at_ >= kTrafficEvery) report_traffic();
  const CountedAs slots(collective_->ledger(), Traffic::kSlots);
  const worker::StepSlotBytes mine = encode(effect.mine);
  std::vector<std::byte> all(mine.size() * collective_->size());
  const Status gathered = collective_->allgather(mine, all);
  if (!gathered) return worker::group_failed(gathered.error());
  return worker::SlotsGathered{worker::decode_step_slots(all)};
}

Input MemberDriver::perform(const worker::Apply& effect) {
  const Status applied = tools_.engine.apply(effect.weight);
  if (!applied) return worker::WorkFailed{applied.error()};
  return worker::Applied{};
}

Input MemberDriver::perform(const worker::TakePlan& effect) {
  auto plan = tools_.client.plan(effect.version);
  ANTDT_CHECK(plan.has_value(), "a slot said plan {} was held, and it is not", effect.version);
  return worker::PlanTaken{std::move(*plan)};
}

Input MemberDriver::perform(const worker::MeasureHop&) {
  const CountedAs other(collective_->ledger(), Traffic::kOther);
  auto hop = collective_->measure_hop();
  if (!hop) return worker::group_failed(hop.error());
  return worker::HopMeasured{*hop};
}

Input MemberDriver::perform(const worker::AwaitRecords& effect) {
  std::this_thread::sleep_for(effect.time);
  return worker::RecordsAwaited{};
}

Input MemberDriver::perform(const worker::EvaluateBatch& effect) {
  auto batch = tools_.prefetcher.next(effect.records, effect.patience);
  if (!batch) return worker::WorkFailed{batch.error()};
  worker::BatchEvaluated done;
  done.status = batch->status;
  if (batch->status != client::TakeStatus::kData) return done;
  const Status pulled = pull(batch->examples);
  if (!pulled) return worker::rows_failed(pulled.error());
  tools_.account.enter(TimeUse::kCompute);
  auto partial = tools_.engine.evaluate(batch->examples);
  if (!partial) return worker::WorkFailed{partial.error()};
  done.records = batch->examples.count;
  done.partial = std::move(*partial);
  tools_.client.time_account(tools_.account.seconds());
  return done;
}

}  // namespace antdt::trainer
