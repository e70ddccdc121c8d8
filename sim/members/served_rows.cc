#include "sim/members/served_rows.h"

#include <algorithm>
#include <utility>

#include "sim/members/worker.h"
#include "sim/network.h"
#include "sim/servers/tally.h"
#include "sim/surroundings.h"
#include "trainer/ps/placement.h"

namespace antdt::sim {

// ---------------------------------------------------------------- what is waited for

ServedRows::Answer ServedRows::await(Look look) {
  if (!advance()) return lost();
  const std::uint64_t before = operations_;
  if (auto answer = look()) return answer;
  if (operations_ != before) return {};  // another operation has begun
  std::ignore = worker_.begin_operation();
  look_ = std::move(look);
  link_->wait();
  return {};
}

void ServedRows::wake() {
  if (!look_) return;
  const std::uint64_t operation = worker_.operation();
  if (!advance()) return answer(operation, lost());
  const auto look = look_;
  const std::uint64_t before = operations_;
  if (auto found = look()) return answer(operation, std::move(*found));
  if (operations_ == before) link_->wait();
}

void ServedRows::answer(std::uint64_t operation, worker::Input input) {
  if (!concluding_) return worker_.answered(operation, std::move(input));
  tell_concluded("the servers are not reached");
  worker_.finished(operation);
}

void ServedRows::answered(PsAnswer&& answer) {
  if (!link_) return;
  link_->answered(std::move(answer));
  wake();
}

// Takes in what has come, without waiting. Returns false if no server answers any more.
bool ServedRows::advance() {
  if (worker_.end_of_generation().over() || link_ == nullptr) return false;
  link_->hear();
  return !error_ && !link_->calls().failure();
}

// A refusal that does not say that the sender is behind is a fault of this project.
worker::Input ServedRows::lost() {
  std::string why = "the generation is over";
  if (link_ != nullptr && !worker_.end_of_generation().over()) {
    const auto& failure = error_ ? error_ : link_->calls().failure();
    if (failure) why = failure->message;
    const bool refused =
        failure && (failure->kind == ErrorKind::kRefused || failure->kind == ErrorKind::kCorrupt);
    if (refused) {
      worker_.world().violate("rows as the replica", why + "; " + worker_.doing());
    }
    if (failure) return worker::rows_failed(*failure);
  }
  return worker::CollectiveBroke{why};
}

ServedRows::Answer ServedRows::await_call(Next next) {
  link_->perform_all();
  return await([this, next = std::move(next)]() -> Answer {
    auto answer = link_->calls().take_answer();
    if (!answer) return {};
    if (*answer) {
      stop_waiting();
      return next();
    }
    error_ = answer->error();
    return lost();
  });
}

// ------------------------------------------------------------------------- the link

ServedRows::Answer ServedRows::perform(const worker::UseServers& effect) {
  leave();
  group_ = effect.group;
  if (effect.servers.servers.empty()) {
    worker_.world().violate("rows as the replica",
                            "a generation has settled, and no servers serve; " + worker_.doing());
  }
  PsLink::Outside outside{
      [this] { return worker_.clock().now(); },
      [this](Duration delay, World::Action action) {
        worker_.later(worker_.clock().real(delay), std::move(action));
      },
      [this](const std::string& address, PsPacket packet) {
        worker_.send_packet(address, std::move(packet));
      },
      [this] { return worker_.around().network.new_socket(worker_.member()); },
      // Servers of such a job are not replaced one by one: the generation ends with one of them.
      [](std::uint64_t) { return std::optional<wire::PsRoster>(); }, [this] { wake(); }};
  link_ = std::make_unique<PsLink>(std::move(outside), worker_.member(), group_,
                                   ps::consistency_of(effect.servers.sync).value(), effect.servers);
  return {};
}

void ServedRows::leave() {
  stop_waiting();
  link_.reset();
  error_.reset();
  open_ = false;
}

ServedRows::Answer ServedRows::opened(Next next) {
  if (!advance()) return lost();
  if (open_) return next();
  link_->calls().open(tally_tables(worker_.shape().sync), worker_.clock().now(), link_->wanted());
  return await_call([this, next = std::move(next)]() -> Answer {
    open_ = true;
    return next();
  });
}

wire::PsConcluded ServedRows::concluded() const {
  const worker::TrainingState& training = worker_.training();
  wire::PsConcluded concluded{worker_.generation(),
                              static_cast<std::uint32_t>(training.members.size()),
                              training.step,
                              training.weight,
                              training.rate,
                              training.cut,
                              {}};
  if (concluded.cut != 0) concluded.directory = directory_of(concluded.cut);
  return concluded;
}

std::string ServedRows::directory_of(std::uint64_t cut) const {
  return wire::slices_directory(cut, group_);
}

// ------------------------------------------------------------------- what is asked

ServedRows::Answer ServedRows::pull(std::span<const Record> records, Next next) {
  return opened([this, records = std::vector(records.begin(), records.end()),
                 next = std::move(next)] { return say_pull(records, next); });
}

void ServedRows::conclude(std::function<void(std::string)> done) {
  concluding_ = std::move(done);
  const Answer lost_at_once = pull({}, [this]() -> Answer {
    const std::uint64_t operation = worker_.operation();
    tell_concluded({});
    worker_.finished(operation);
    return {};
  });
  if (lost_at_once) tell_concluded("the servers are not reached");
}

void ServedRows::tell_concluded(std::string error) {
  std::exchange(concluding_, nullptr)(std::move(error));
}

ServedRows::Answer ServedRows::say_pull(const std::vector<Record>& records, Next next) {
  std::vector<ps::TableKeys> rows;
  if (!records.empty()) rows.push_back({0, keys_of(records)});
  ps::WorkerCalls& calls = link_->calls();
  const auto ticket =
      calls.say_step_pull(rows, concluded(), worker_.clock().now(), link_->wanted()).value();
  link_->perform_all();
  return await([this, ticket, records, next = std::move(next)]() -> Answer {
    if (!link_->calls().is_here(ticket)) return {};
    const auto pulled = link_->calls().take(ticket);
    if (!pulled) {
      error_ = pulled.error();
      return lost();
    }
    check_rows(records, *pulled);
    stop_waiting();
    return next();
  });
}

void ServedRows::check_rows(const std::vector<Record>& records,
                            const ps::WorkerCalls::Pulled& pulled) const {
  if (records.empty()) return;
  std::vector<Record> rising = records;
  std::ranges::sort(rising);
  const std::vector<float>& rows = pulled.values.front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Record record = rising[i / kRowsOfRecord];
    const unsigned counted = worker_.model().tally.at(record);
    if (rows[i] == static_cast<float>(counted)) continue;
    return worker_.world().violate(
        "rows as the replica",
        fmt::format("row {} of record {} has counted it {} times, and the replica {} times; {}",
                    i % kRowsOfRecord, record, rows[i], counted, worker_.doing()));
  }
}

// Sabotage: it gathers although no server has its part of this step.
bool ServedRows::leaves_out() const {
  return worker_.sabotage() == Sabotage::kGatherUnstaged && worker_.step().value % 8 == 7;
}

ServedRows::Answer ServedRows::perform(const worker::SendPart&) {
  if (leaves_out()) return worker::PartSent{};
  return opened([this]() -> Answer {
    ps::TableGradient part{0, {keys_of({worker_.batch().begin(), worker_.batch().end()}), {}}};
    part.gradient.values.assign(part.gradient.keys.size(), 1.0F);
    const Status said = link_->calls().stage({std::move(part)}, concluded(), worker_.rank(),
                                             worker_.clock().now(), link_->wanted());
    if (!said) {
      error_ = said.error();
      return lost();
    }
    link_->perform_all();
    return worker::PartSent{};
  });
}

ServedRows::Answer ServedRows::perform(const worker::AwaitPartStaged&) {
  if (leaves_out()) return worker::PartStaged{};
  return await_call([]() -> Answer { return worker::PartStaged{}; });
}

}  // namespace antdt::sim
