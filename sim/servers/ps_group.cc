#include "sim/servers/ps_group.h"

#include <algorithm>
#include <utility>

#include "sim/servers/tally.h"
#include "trainer/ps/placement.h"

namespace antdt::sim {

// ---------------------------------------------------------------- what is waited for

PsGroup::Answer PsGroup::await(Look look) {
  if (!advance()) return lost();
  const std::uint64_t before = operations_;
  if (auto answer = look()) return answer;
  if (operations_ != before) return {};  // another operation has begun
  outside_.begin_operation();
  look_ = std::move(look);
  link_->wait();
  return {};
}

void PsGroup::wake() {
  if (!look_) return;
  if (!advance()) return outside_.answer(lost());
  const auto look = look_;
  const std::uint64_t before = operations_;
  if (auto answer = look()) return outside_.answer(std::move(*answer));
  if (operations_ == before) link_->wait();
}

void PsGroup::answered(PsAnswer&& answer) {
  if (!link_) return;
  link_->answered(std::move(answer));
  wake();
}

bool PsGroup::advance() {
  if (outside_.over()) return false;
  link_->hear();
  return !error_ && !link_->calls().failure();
}

// A refusal that does not name another group is a fault of this project.
ps_worker::Input PsGroup::lost() {
  const auto& failure = error_ ? error_ : link_->calls().failure();
  const bool refused =
      failure && (failure->kind == ErrorKind::kRefused || failure->kind == ErrorKind::kCorrupt);
  if (refused && !outside_.over()) {
    outside_.refused(failure->message);
  }
  // It cannot read its slices just now.
  if (failure && failure->kind == ErrorKind::kPeerIo) return worker::WorkFailed{*failure};
  return ps_worker::ServersLost{"no server answers any more"};
}

// --------------------------------------------------------------------- the group

PsGroup::Answer PsGroup::perform(const ps_worker::OpenServers& effect) {
  leave();
  outside_.begin(effect.generation);
  PsLink::Outside outside = outside_.link;
  outside.due = [this] { wake(); };
  const auto consistency = ps::consistency_of(effect.roster.sync).value();
  link_ = std::make_unique<PsLink>(std::move(outside), self_, effect.generation, consistency,
                                   effect.roster);
  link_->calls().open(tally_tables(effect.roster.sync), now(), link_->wanted());
  return await_call([this](std::uint64_t version) -> Answer {
    std::ignore = link_->calls().put({}, now(), link_->wanted());
    return await_call([version](std::uint64_t) { return ps_worker::ServersOpened{version}; });
  });
}

void PsGroup::leave() {
  link_.reset();
  error_.reset();
  look_ = nullptr;
  pull_.reset();
  centre_pull_.reset();
  pulled_ = {};
}

PsGroup::Answer PsGroup::await_call(Next next) {
  link_->perform_all();
  return await([this, next = std::move(next)]() -> Answer {
    auto answer = link_->calls().take_answer();
    if (!answer) return {};
    if (*answer) return next(**answer);
    error_ = answer->error();
    return lost();
  });
}

PsGroup::Answer PsGroup::perform(const ps_worker::SayIdle&) {
  link_->calls().idle(now(), link_->wanted());
  return await_call([](std::uint64_t decided) { return ps_worker::SaidIdle{decided}; });
}

PsGroup::Answer PsGroup::perform(const ps_worker::SettleServers&) {
  link_->calls().settle(now(), link_->wanted());
  return await_call([](std::uint64_t decided) { return ps_worker::ServersSettled{decided}; });
}

PsGroup::Answer PsGroup::perform(const ps_worker::AwaitServers&) {
  return await([this]() -> Answer {
    const bool centre = centre_pull_ && link_->calls().is_here(*centre_pull_);
    if (centre || link_->calls().has_decision()) return ps_worker::ServersAnswered{};
    return {};
  });
}

// ------------------------------------------------------------------ pulls and pushes

PsGroup::Answer PsGroup::perform(const ps_worker::SayCentrePull&) {
  centre_pull_ =
      link_->calls().say_pull({{kCentreTable, centre_keys()}}, 0, now(), link_->wanted()).value();
  link_->perform_all();
  return {};
}

bool PsGroup::take_centre() {
  if (!link_ || !centre_pull_ || !link_->calls().is_here(*centre_pull_)) return false;
  auto pulled = link_->calls().take(*std::exchange(centre_pull_, std::nullopt));
  if (!pulled) {
    error_ = pulled.error();
    return false;
  }
  centre_ = std::move(*pulled);
  return true;
}

void PsGroup::say_pull(const std::vector<std::uint64_t>& keys, std::uint64_t clock) {
  std::vector<ps::TableKeys> rows;
  if (!keys.empty()) rows.push_back({0, keys});
  pull_ = link_->calls().say_pull(rows, clock, now(), link_->wanted()).value();
  link_->perform_all();
}

PsGroup::Answer PsGroup::perform(const ps_worker::ForgetPull&) {
  if (pull_) link_->calls().forget(*pull_);
  pull_.reset();
  return {};
}

PsGroup::Answer PsGroup::perform(const ps_worker::AwaitRows&) {
  return await([this]() -> Answer {
    if (link_->calls().is_here(*pull_)) return rows_pulled();
    if (link_->calls().has_decision()) return ps_worker::ServersAnswered{};
    return {};
  });
}

PsGroup::Answer PsGroup::await_pull(std::function<Answer()> next) {
  return await([this, next = std::move(next)]() -> Answer {
    if (!link_->calls().is_here(*pull_)) return {};
    Answer rows = rows_pulled();
    if (std::holds_alternative<ps_worker::ServersLost>(*rows)) return rows;
    stop_waiting();
    return next();
  });
}

PsGroup::Answer PsGroup::rows_pulled() {
  auto pulled = link_->calls().take(*std::exchange(pull_, std::nullopt));
  if (!pulled) {
    error_ = pulled.error();
    return lost();
  }
  pulled_ = std::move(*pulled);
  const auto [oldest, newest] = std::ranges::minmax(pulled_.versions);
  return ps_worker::RowsPulled{oldest, newest, pulled_.clock};
}

PsGroup::Answer PsGroup::say_push(std::vector<std::uint64_t> keys, float value, Exchange exchange,
                                  const wire::PsCommit& commit) {
  std::vector<ps::TableGradient> parts{{0, {std::move(keys), {}}}};
  parts[0].gradient.values.assign(parts[0].gradient.keys.size(), value);
  if (exchange.value) {
    std::vector<float> values(centre_keys().size(), *exchange.value);
    parts.push_back({kCentreTable, {centre_keys(), std::move(values)}});
  }
  const std::vector<std::uint64_t>& versions = exchange.alone ? centre_.versions : pulled_.versions;
  const Status said = link_->calls().say_push(parts, versions, commit, now(), link_->wanted());
  link_->perform_all();
  if (said) return ps_worker::PushSaid{};
  error_ = said.error();
  return lost();
}

}  // namespace antdt::sim
