#include "ctl/processes/vitals.h"

#include <fmt/format.h>

#include <algorithm>

namespace antdt::ctl {
namespace {

constexpr std::string_view kWaiting = "collective_wait";

}  // namespace

void Vitals::watch(Member member, MonoTime now) {
  signs_[member] = {now, {}, {}, {}, now, std::ranges::find(group_, member) != group_.end()};
}

void Vitals::forget(Member member) {
  signs_.erase(member);
  io_.forget(member);
  std::erase(group_, member);
}

void Vitals::expect_steps(const std::vector<Member>& group, MonoTime now) {
  for (const Member member : group_) {
    if (const auto found = signs_.find(member); found != signs_.end()) {
      found->second.makes_steps = false;
    }
  }
  group_ = group;
  for (const Member member : group_) {
    if (const auto found = signs_.find(member); found != signs_.end()) {
      found->second.makes_steps = true;
    }
  }
  step_ = {};
  stepped_ = now;
}

void Vitals::excuse(const std::vector<Member>& members, MonoTime now) {
  for (const Member member : members) {
    if (const auto found = signs_.find(member); found != signs_.end()) found->second.heard = now;
    io_.excuse(member, now);
  }
}

IoMoved Vitals::heard(Member member, const wire::Report& report, MonoTime now) {
  heard(member, report.step, report.activity, now);
  const auto found = signs_.find(member);
  if (found == signs_.end() && !opens_data(report.io)) {
    io_.forget(member);
    return IoMoved::kNothing;
  }
  if (found != signs_.end()) {
    Signs& signs = found->second;
    if (signs.account != report.account) signs.moved = now;
    signs.account = report.account;
  }
  return io_.heard(member, report, now);
}

void Vitals::heard(Member member, Step step, const std::string& activity, MonoTime now) {
  const auto found = signs_.find(member);
  if (found == signs_.end()) return;
  Signs& signs = found->second;
  signs.heard = now;
  if (activity.empty()) return;  // the message says nothing about the training thread
  if (signs.step != step || signs.activity != activity) signs.moved = now;
  signs.step = step;
  signs.activity = activity;
  if (signs.makes_steps && step > step_) {
    step_ = step;
    stepped_ = now;
  }
}

std::vector<Vitals::Finding> Vitals::check(MonoTime now) {
  std::vector<Finding> found;
  for (auto& [member, signs] : signs_) {
    if (now - signs.heard < hang_after_) continue;
    signs.heard = now;
    // the process cannot report anything meanwhile
    const std::string still = io_.stands_still(member, now);
    found.emplace_back(HungMember{
        member, still.empty()
                    ? fmt::format("nothing was heard of it for {:.0f} s although its host answers",
                                  to_seconds(hang_after_))
                    : still});
  }
  if (!found.empty() || group_.empty() || now - stepped_ < hang_after_) return found;
  for (auto& [member, why] : io_.all_that_stand_still(now)) {
    found.emplace_back(HungMember{member, std::move(why)});
  }
  if (!found.empty() || io_.some_move(now)) {
    stepped_ = now;
    return found;
  }
  const bool nobody_says =
      std::ranges::all_of(group_, [&](Member member) { return signs_[member].activity.empty(); });
  for (const Member member : group_) {
    Signs& signs = signs_[member];
    // A process that never reported its activity is judged only if others report theirs.
    if (signs.activity == kWaiting || now - signs.moved < hang_after_) continue;
    if (signs.activity.empty() && nobody_says) continue;
    found.emplace_back(HungMember{
        member, fmt::format("no step was made for {:.0f} s, and it has been in '{}' all the time",
                            to_seconds(hang_after_), signs.activity)});
  }
  const bool all_wait = std::ranges::all_of(
      group_, [&](Member member) { return signs_[member].activity == kWaiting; });
  if (found.empty() && !all_wait) return found;
  if (found.empty()) {
    found.emplace_back(StuckCollective{
        fmt::format("no step was made for {:.0f} s and every member waits in the collective",
                    to_seconds(hang_after_))});
  }
  stepped_ = now;
  return found;
}

}  // namespace antdt::ctl
