#include "sim/fleet/player.h"

#include <algorithm>

#include "core/overloaded.h"
#include "core/permutation.h"
#include "core/sync_strategy.h"
#include "sim/fleet/groups/collective.h"
#include "sim/fleet/groups/push_group.h"

namespace antdt::fleet {
namespace {

// Workers report at different moments, in this number of groups.
constexpr std::size_t kBunches = 32;
constexpr Duration kServersReport = std::chrono::seconds(1);

}  // namespace

Player::Player(Setup setup, const Speeds& speeds)
    : setup_(std::move(setup)), speeds_(speeds), world_(setup_.seed, false) {
  workers_.resize(setup_.workers);
  servers_.resize(setup_.servers);
  for (std::uint32_t i = 0; i < setup_.workers; ++i) workers_[i].member.worker = {'w', i};
  for (std::uint32_t i = 0; i < setup_.servers; ++i) servers_[i].member.worker = {'s', i};
  if (in_collective(setup_.machine.spec.sync)) {
    group_ = std::make_unique<Collective>(*this);
  } else {
    group_ = std::make_unique<PushGroup>(*this);
  }
}

Player::~Player() = default;

Result<Played> Player::play() {
  ANTDT_TRY(machine_, ctl::JobMachine::open(setup_.machine, std::move(setup_.solution), {}));
  begin();
  const MonoTime end = now() + setup_.limit;
  MonoTime turn = now();
  while (!outcome_ && now() < end && world_.run_one()) {
    if (now() == turn) continue;
    turn = now();
    end_turn();
  }
  played_.ended = outcome_.has_value();
  played_.report = machine_->report();
  if (outcome_) {
    played_.report.state = state_after(outcome_->state);
    played_.report.outcome = outcome_;
  }
  played_.seconds = played_.report.training_seconds;
  played_.steps = group_->step().value;
  return std::move(played_);
}

// What a daemon would write at the end of a turn of its loop.
void Player::end_turn() {
  if (auto image = machine_->image_if_changed()) {
    ctl::job::Effect record = ctl::job::PersistRecord{ctl::kImageRecord, std::move(*image)};
    carry_out(record);
  }
  if (setup_.onlooker != nullptr) setup_.onlooker->end_turn();
}

ctl::job::HostWelcomed Player::welcome_of(const std::string& host) const {
  const std::size_t hosts = setup_.hosts.size();
  ctl::job::HostWelcomed welcome;
  welcome.host.host = welcome.host.name = host;
  welcome.host.order =
      static_cast<std::uint32_t>(std::ranges::find(setup_.hosts, host) - setup_.hosts.begin());
  const std::size_t processes = workers_.size() + servers_.size();
  welcome.host.room = static_cast<std::uint32_t>((processes + hosts - 1) / hosts + 1);
  welcome.host.up = true;
  for (const auto* all : {&servers_, &workers_}) {
    for (const Worker& w : *all) {
      if (!w.alive || w.host != host) continue;
      welcome.running.push_back({w.member.worker, w.member.attempt, w.pid()});
    }
  }
  return welcome;
}

std::vector<Worker*> Player::processes() {
  std::vector<Worker*> all;
  for (auto* of : {&servers_, &workers_}) {
    for (Worker& w : *of) all.push_back(&w);
  }
  return all;
}

void Player::begin() {
  feed(ctl::job::JobCreated{});
  const std::size_t hosts = setup_.hosts.size();
  ctl::lifecycle::WorkersPlaced placed;
  for (const std::string& host : setup_.hosts) feed(welcome_of(host));
  for (const auto* all : {&servers_, &workers_}) {
    for (std::size_t i = 0; i < all->size(); ++i) {
      const std::size_t h = i * hosts / all->size();
      placed.workers.push_back(
          {(*all)[i].member.worker, setup_.hosts[h], static_cast<std::uint32_t>(h)});
    }
  }
  feed(placed);
  const Pace& pace = setup_.pace;
  every(pace.tick, [this] { feed(ctl::job::TimePassed{}); });
  every(pace.decide.value_or(machine_->control_interval()), [this] { decide(); });
  every(pace.report.value_or(ctl::report_interval(setup_.machine.control.monitor)) / kBunches,
        [this] { report_some(); });
  if (!servers_.empty()) every(kServersReport, [this] { report_servers(); });
  if (setup_.onlooker != nullptr) setup_.onlooker->begin(*this);
}

void Player::every(Duration period, const std::function<void()>& what) {
  world_.after(period, [this, period, what] {
    every(period, what);
    what();
  });
}

// ------------------------------------------------------------------ the job

void Player::feed(ctl::job::Input input) {
  inbox_.push_back(std::move(input));
  if (!pumping_) pump();
}

void Player::pump() {
  pumping_ = true;
  ctl::job::Effects outputs;
  while (!inbox_.empty()) {
    const ctl::job::Input input = std::move(inbox_.front());
    inbox_.pop_front();
    outputs.clear();
    machine_->step(input, now(), outputs);
    for (ctl::job::Effect& output : outputs) carry_out(output);
  }
  pumping_ = false;
}

void Player::carry_out(ctl::job::Effect& output) {
  std::visit(Overloaded{
                 [&](const ctl::job::PersistRecord& o) {
                   played_.journal_bytes += o.bytes.size();
                   if (setup_.onlooker != nullptr) setup_.onlooker->persist(o);
                 },
                 [&](ctl::job::SendToWorker& o) {
                   Worker& to = worker(o.to.worker);
                   if (!to.alive || to.member != o.to) return;
                   if (const auto* grants = std::get_if<wire::Grants>(&o.body)) {
                     group_->recorded(o.generation, grants->recorded);
                     to.feed.on_grants(o.seq, *grants, now());
                     return fetch(to);
                   }
                   if (const auto* recall = std::get_if<wire::Recall>(&o.body)) {
                     const auto back = to.feed.on_recall(o.generation, o.seq, *recall);
                     if (back) say(to, *back, o.seq);
                     return;
                   }
                   group_->hear(to, o.generation, o.body);
                 },
                 [&](const ctl::lifecycle::StartWorker& o) { start(o.member, o.host); },
                 [&](const ctl::lifecycle::StopWorker& o) { stop(o.member, o.grace); },
                 [&](const ctl::lifecycle::PrepareGang&) {},
                 [&](const ctl::job::StoreCheckpoint& o) { store(o); },
                 [&](const ctl::job::RemoveUnfinished&) {},
                 [&](const ctl::job::FindCheckpoint&) {
                   ctl::job::CheckpointFound found;
                   if (newest_checkpoint_) {
                     found = {newest_checkpoint_->written.directory,
                              newest_checkpoint_->written.step, newest_checkpoint_->ledger_image,
                              newest_checkpoint_->accounts_image};
                   }
                   feed(std::move(found));
                 },
                 [&](ctl::job::RememberEntry& o) {
                   if (setup_.onlooker != nullptr) setup_.onlooker->remember(std::move(o.entry));
                 },
                 [&](const ctl::job::PublishNote&) {},
                 [&](const ctl::lifecycle::EndJob& o) { outcome_ = o.outcome; },
             },
             output);
}

void Player::store(const ctl::job::StoreCheckpoint& order) {
  newest_checkpoint_ = order;
  feed(ctl::job::CheckpointStored{order.written.number, order.written.step, "simulated", ""});
}

// ---------------------------------------------------------------- processes

void Player::start(Member member, const std::string& host) {
  Worker& fresh = worker(member.worker);
  fresh = Worker{};
  fresh.member = member;
  fresh.host = host;
  fresh.alive = true;
  fresh.started = now();
  feed(ctl::lifecycle::WorkerStarted{member, fresh.pid()});
  world_.after(from_seconds(setup_.costs.start_s), [this, member] {
    Worker& ready = worker(member.worker);
    if (!ready.alive || ready.member != member) return;
    ready.account.startup = setup_.costs.start_s;
    group_->joined(ready);
  });
}

// SIGTERM: it finishes its step; SIGKILL after the grace, or at once without one.
void Player::stop(Member member, Duration grace) {
  Worker& asked = worker(member.worker);
  if (!asked.alive || asked.member != member) return;
  if (grace > Duration{}) {
    group_->hear(asked, asked.generation, wire::Leave{"asked to stop", 75});
  }
  world_.after(grace, [this, member] {
    Worker& late = worker(member.worker);
    if (late.alive && late.member == member) ended(late, {-1, 9, "", "", ""});
  });
}

void Player::leave(Worker& worker, std::uint32_t code) {
  say(worker, wire::Bye{worker.samples_total, worker.account, ""});
  ended(worker, {static_cast<std::int32_t>(code), 0, "", "", ""});
}

void Player::kill(WorkerId worker, const wire::ProcessExited& how) {
  Worker& killed = this->worker(worker);
  if (killed.alive) ended(killed, how);
}

void Player::lose(const std::string& host) {
  if (!lost_hosts_.insert(host).second) return;
  for (Worker* w : processes()) {
    if (!w->alive || w->host != host) continue;
    w->alive = false;
    group_->gone(*w);
  }
  feed(ctl::lifecycle::HostLost{host, "simulated"});
}

void Player::welcome(const std::string& host) {
  if (lost_hosts_.erase(host) > 0) feed(welcome_of(host));
}

Status Player::restart_job_daemon(const shard_server::JournalContent& journal,
                                  std::unique_ptr<ctl::Solution> solution) {
  const std::string ledger = machine_->ledger().image();
  const std::string accounts = machine_->accounts().image();
  ++setup_.machine.incarnation.value;
  ANTDT_TRY(machine_, ctl::JobMachine::open(setup_.machine, std::move(solution), journal));
  if (machine_->ledger().image() != ledger || machine_->accounts().image() != accounts) {
    return fail(ErrorKind::kCorrupt, "a replay of the journal comes to another state");
  }
  feed(ctl::job::IncarnationRecovered{});
  for (const std::string& host : setup_.hosts) {
    if (!lost_hosts_.contains(host)) feed(welcome_of(host));
  }
  return {};
}

void Player::ended(Worker& worker, const wire::ProcessExited& exit) {
  worker.alive = false;
  group_->gone(worker);
  feed(ctl::lifecycle::WorkerExited{worker.member, exit});
}

// ------------------------------------------------------------ what they say

void Player::say(Worker& worker, ctl::job::WorkerBody body, std::uint64_t seq) {
  ++played_.messages;
  feed(ctl::job::WorkerSaid{worker.member, worker.generation, seq, std::move(body)});
}

void Player::fetch(Worker& worker) {
  if (auto request = worker.feed.poll(now())) {
    say(worker, std::move(request->fetch), request->seq);
  }
}

void Player::report_some() {
  const std::size_t end = workers_.size() * (next_report_ + 1) / kBunches;
  for (std::size_t i = workers_.size() * next_report_ / kBunches; i < end; ++i) {
    Worker& w = workers_[i];
    if (w.alive && w.generation != Generation{}) {
      say(w, w.metrics(group_->step(), group_->activity(w), now()));
    }
  }
  next_report_ = (next_report_ + 1) % kBunches;
}

// The servers' speeds are not simulated, so they report none; but they are alive.
void Player::report_servers() {
  for (Worker& s : servers_) {
    if (!s.alive || s.generation == Generation{}) continue;
    wire::PsStats stats;
    stats.version = group_->step().value;
    say(s, stats);
    say(s, s.metrics(group_->step(), "compute", now()));
  }
}

void Player::decide() {
  if (setup_.stopwatch == nullptr) return feed(ctl::job::ControlTickPassed{});
  const MonoTime began = setup_.stopwatch->now();
  feed(ctl::job::ControlTickPassed{});
  const double took = to_seconds(setup_.stopwatch->now() - began);
  ++played_.decisions;
  played_.all_decisions_s += took;
  played_.longest_decision_s = std::max(played_.longest_decision_s, took);
}

// ------------------------------------------------------------------- speeds

bool Player::fits(const Worker& worker) const {
  const BatchTime time = speeds_.at(worker.member.worker.index, 0, 0);
  return time.memory == 0 || worker.share.micro_batch <= time.memory;
}

void Player::out_of_memory(Worker& worker) {
  ended(worker, {-1, 9, "", "", "simulated: the micro-batch does not fit the device"});
}

std::optional<double> Player::measured_cost_s() const {
  return speeds_.step_cost_s(first_work_ ? to_seconds(now() - *first_work_) : 0);
}

double Player::exchange_s(std::size_t members) const {
  const auto measured = measured_cost_s();
  return measured ? setup_.costs.scaled_s(*measured, members) : setup_.costs.exchange_s(members);
}

double Player::round_trip_s() const {
  const auto measured = measured_cost_s();
  return measured ? *measured / 2 : setup_.costs.round_trip_s;
}

double Player::work(Worker& worker, std::uint64_t records) {
  if (!first_work_) first_work_ = now();
  if (!worker.first_step) worker.first_step = now();
  const double at_s = to_seconds(now() - *worker.first_step);
  const BatchTime time = speeds_.at(worker.member.worker.index, at_s, group_->step().value);
  double seconds = 0;
  while (records > 0) {
    const std::uint64_t batch = std::min<std::uint64_t>(records, worker.share.micro_batch);
    seconds += time.seconds(static_cast<double>(batch)) *
               speeds_.noise(worker.member.worker.index, worker.batches++);
    records -= batch;
  }
  return seconds;
}

}  // namespace antdt::fleet
