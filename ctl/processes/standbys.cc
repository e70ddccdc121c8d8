#include "ctl/processes/standbys.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::standby {

Standbys::Standbys(std::uint32_t wanted, Incarnation incarnation, std::optional<std::uint32_t> own)
    : wanted_(wanted), incarnation_(incarnation), own_(own) {}

void Standbys::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  settle(now, out);
  check_invariants();
}

// From: away. To: free, or up.
void Standbys::on(const HostCame& input, MonoTime, Effects&) {
  if (wanted_ == 0 || own_ == input.order) return;
  Host& host = hosts_[input.order];
  host.name = input.name;
  host.end_point = input.host;
  // The agent may have been restarted while it was asked to start one.
  if (host.state == State::kStarting && !input.up) return;
  host.state = input.up ? State::kUp : State::kFree;
  if (input.up) host.attempt = *input.up;
}

// To: away.
void Standbys::on(const HostGone& input, MonoTime, Effects&) {
  std::erase_if(hosts_, [&](const auto& h) { return h.second.end_point == input.host; });
}

// From: starting. To: up.
void Standbys::on(const StandbyStarted& input, MonoTime, Effects& out) {
  Host* const host = find(input.member);
  if (host == nullptr || host->state != State::kStarting) return;
  host->state = State::kUp;
  out.emplace_back(TellOperator{fmt::format(
      "a job daemon stands by on {}, to go on if this one's host is lost", host->name)});
}

// From: starting, up. To: pausing.
void Standbys::on(const StandbyEnded& input, MonoTime now, Effects& out) {
  Host* const host = find(input.member);
  if (host == nullptr || (host->state != State::kStarting && host->state != State::kUp)) return;
  host->state = State::kPausing;
  host->due = now + host->pause;
  out.emplace_back(
      TellOperator{fmt::format("the job daemon that stood by on {} ended: {}; tried "
                               "again in {:.0f} s",
                               host->name, input.why, to_seconds(host->pause))});
  host->pause = std::min(2 * host->pause, kLongestPause);
}

// From: starting, up. To: free.
void Standbys::on(const JobEnded&, MonoTime, Effects& out) {
  wanted_ = 0;
  for (auto& [order, host] : hosts_) {
    if (host.state == State::kStarting || host.state == State::kUp) stop(order, host, out);
  }
}

// From: pausing. To: free, when the pause is over. A start that was not answered is repeated.
void Standbys::on(const TimePassed&, MonoTime now, Effects& out) {
  for (auto& [order, host] : hosts_) {
    if (now < host.due) continue;
    if (host.state == State::kPausing) host.state = State::kFree;
    if (host.state == State::kStarting) {
      host.due = now + kAskAgain;
      out.emplace_back(StartStandby{host.end_point, {{kStandby, order}, host.attempt}});
    }
  }
}

void Standbys::settle(MonoTime now, Effects& out) {
  std::uint32_t there = 0;
  for (auto& [order, host] : hosts_) {
    if (host.state != State::kStarting && host.state != State::kUp) continue;
    if (++there <= wanted_ || host.state != State::kUp) continue;
    stop(order, host, out);
    --there;
  }
  for (auto& [order, host] : hosts_) {
    if (there >= wanted_) return;
    if (host.state != State::kFree) continue;
    start(order, host, now, out);
    ++there;
  }
}

// From: starting, up. To: free.
void Standbys::stop(std::uint32_t order, Host& host, Effects& out) {
  out.emplace_back(StopStandby{host.end_point, {{kStandby, order}, host.attempt}});
  host.state = State::kFree;
}

// From: free. To: starting.
void Standbys::start(std::uint32_t order, Host& host, MonoTime now, Effects& out) {
  const Attempt first{static_cast<std::uint32_t>(incarnation_.value) * kAttempts};
  host.attempt = std::max(Attempt{host.attempt.value + 1}, first);
  host.state = State::kStarting;
  host.due = now + kAskAgain;
  out.emplace_back(StartStandby{host.end_point, {{kStandby, order}, host.attempt}});
}

Standbys::Host* Standbys::find(Member member) {
  const auto host = hosts_.find(member.worker.index);
  if (member.worker.role != kStandby || host == hosts_.end()) return nullptr;
  return host->second.attempt == member.attempt ? &host->second : nullptr;
}

void Standbys::check_invariants() const {
  std::uint32_t there = 0;
  for (const auto& [order, host] : hosts_) {
    ANTDT_CHECK(own_ != order, "a standby beside its job daemon, on host {}", order);
    if (host.state == State::kUp) ++there;
  }
  ANTDT_CHECK(there <= wanted_, "{} job daemons stand by, {} are wanted", there, wanted_);
}

}  // namespace antdt::ctl::standby
