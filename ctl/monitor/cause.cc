#include "ctl/monitor/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/statistics/median.h"

namespace antdt::ctl {
namespace {

// Of the lost time, to be its explanation.
constexpr double kExplains = 0.5;
// One of two parts of the time is where it was lost when it has this much of it.
constexpr double kMostOfIt = 0.6;
// Said beside the cause when it is this part of the time, because it may be part of it.
constexpr double kWorthSaying = 0.1;

double part(std::uint64_t of, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(of) / static_cast<double>(whole);
}

double median_of(const std::vector<HostSigns>& all, double HostSigns::*field) {
  std::vector<double> values;
  for (const HostSigns& signs : all) {
    if (signs.looked) values.push_back(signs.*field);
  }
  return lower_median(std::move(values));
}

std::string percent(double share) { return fmt::format("{:.0f}% of the time", 100 * share); }

std::string where_lost(const OwnTime& t) {
  return fmt::format(
      "a sample takes {:.3g} ms for its data and {:.3g} ms to compute, the others' {:.3g} and "
      "{:.3g}",
      1e3 * t.data_s, 1e3 * t.compute_s, 1e3 * t.peers_data_s, 1e3 * t.peers_compute_s);
}

// What the host saw, where it is worth a word and no cause.
std::string also_seen(const HostSigns& own) {
  if (!own.looked) return "; its host tells nothing of it";
  std::string text;
  const auto add = [&](double share, const char* what) {
    if (share >= kWorthSaying) text += fmt::format("; {} {}", what, percent(share));
  };
  add(own.throttled, "held back by a bound on its CPU");
  add(own.stolen, "CPU stolen from its machine");
  add(std::min(own.queued, own.starved), "without a CPU");
  add(own.memory, "somebody there waited for memory");
  add(own.io, "somebody there waited for a disk");
  add(own.clocks, "its accelerator's clocks held down");
  return text;
}

}  // namespace

HostSigns signs_of(const wire::HostProbe& probe) {
  if (probe.looked_us == 0) return {};
  HostSigns signs;
  signs.looked = true;
  signs.throttled = part(probe.throttled_us, probe.looked_us);
  signs.stolen = part(probe.stolen_us, probe.looked_us);
  signs.queued = part(probe.queued_us, probe.looked_us);
  signs.starved = part(probe.queued_us, probe.ran_us + probe.queued_us);
  signs.memory = part(probe.memory_stalled_us, probe.looked_us);
  signs.io = part(probe.io_stalled_us, probe.looked_us);
  signs.clocks = part(probe.clocks_us, probe.looked_us);
  return signs;
}

HostSigns usual_signs(const std::vector<HostSigns>& all) {
  HostSigns usual;
  usual.looked = std::ranges::any_of(all, &HostSigns::looked);
  for (const auto field :
       {&HostSigns::throttled, &HostSigns::stolen, &HostSigns::queued, &HostSigns::starved,
        &HostSigns::memory, &HostSigns::io, &HostSigns::clocks}) {
    usual.*field = median_of(all, field);
  }
  return usual;
}

Explained explain_slowness(const OwnTime& t, const HostSigns& own, const HostSigns& usual) {
  const double time = t.data_s + t.compute_s;
  const double data = std::max(0.0, t.data_s - t.peers_data_s);
  const double compute = std::max(0.0, t.compute_s - t.peers_compute_s);
  const double excess = data + compute;
  if (time <= 0 || excess <= 0) return {Cause::kUnknown, where_lost(t)};
  const double lost = std::min(1.0, excess / time);  // of its own time
  const auto explains = [&](double HostSigns::*field, double of) {
    return own.looked && own.*field - usual.*field >= kExplains * of;
  };
  const double lost_wall = lost * t.busy;
  if (explains(&HostSigns::throttled, lost_wall)) {
    return {Cause::kThrottled, "a bound on its CPU time held it back " + percent(own.throttled)};
  }
  if (explains(&HostSigns::stolen, lost_wall)) {
    return {Cause::kStolen, "the CPUs of its machine were given to others " + percent(own.stolen)};
  }
  if (explains(&HostSigns::queued, lost_wall) && explains(&HostSigns::starved, lost)) {
    return {Cause::kContended,
            fmt::format("it could run and had no CPU for {:.0f}% of the time that it wanted one",
                        100 * own.starved)};
  }
  if (explains(&HostSigns::memory, lost_wall)) {
    return {Cause::kMemory, "processes there waited for memory " + percent(own.memory)};
  }
  // How far they were held down is not known: that they were while it computed longer.
  if (compute > data && explains(&HostSigns::clocks, lost_wall)) {
    return {Cause::kClocks, "the clocks of its accelerator were held down, by heat or power, " +
                                percent(own.clocks)};
  }
  Explained found{Cause::kUnknown, where_lost(t) + also_seen(own)};
  if (data > kMostOfIt * excess) found.cause = Cause::kData;
  if (compute > kMostOfIt * excess) found.cause = Cause::kCompute;
  return found;
}

// CPUs are stolen from a host as a whole, so there is nothing usual to compare with.
bool shortage_explains(double severity, double busy, const HostSigns& own, const HostSigns& usual) {
  if (!own.looked || severity <= 1) return false;
  const double lost = kExplains * (1 - 1 / severity);
  if (own.stolen >= lost * busy) return true;
  return own.queued - usual.queued >= lost * busy && own.starved - usual.starved >= lost;
}

}  // namespace antdt::ctl
