#include "ctl/control/solutions/dd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ctl/control/batch_search.h"
#include "ctl/monitor/device_model.h"

namespace antdt::ctl::solutions {

namespace {

// A probe's micro-batch may differ from the wished size by this factor, so that the global batch is
// exact.
constexpr double kProbeSlack = 1.25;
constexpr std::uint32_t kSmallestProbe = 8;  // the smallest probe is the largest divided by this

// Devices of one class; if records may not leave their domain, those in one domain.
struct Class {
  std::string name;
  std::size_t domain = 0;            // index in the view's rests; 0 without any
  std::vector<std::size_t> members;  // indices in the view
  DeviceModel model;
  std::uint32_t least = 1;  // least micro-batch
  std::uint32_t most = 1;
};

std::uint32_t round_up(std::uint32_t value, std::uint32_t multiple_of) {
  return (value + multiple_of - 1) / multiple_of * multiple_of;
}

// The largest micro-batch that can be useful: one that fits the memory, and at most twice an equal
// part.
std::uint32_t largest_of_use(const BatchRules& rules, std::uint32_t equal,
                             const DeviceCurve& curve) {
  std::uint32_t limit = curve.max_batch == 0 ? rules.max
                        : rules.max == 0     ? curve.max_batch
                                             : std::min(curve.max_batch, rules.max);
  if (limit == 0) limit = equal;
  limit = std::min(limit, std::max(2 * equal, rules.multiple_of));
  return std::max(limit / rules.multiple_of * rules.multiple_of, rules.multiple_of);
}

// Workers that divide a number of samples among themselves: all, or those of one domain, which keep
// what they compute together. The controller changes that when the records that are left do.
struct Pool {
  std::vector<std::size_t> members;  // indices in the view
  std::uint32_t samples = 0;         // of a step
};

std::vector<Pool> pools_of(const ClusterView& view) {
  const DomainRests& rests = view.bounds.rests;
  std::vector<Pool> pools(std::max<std::size_t>(rests.size(), 1));
  for (std::size_t i = 0; i < view.workers.size(); ++i) {
    const WorkerView& w = view.workers[i];
    std::size_t pool = 0;
    for (std::size_t d = 0; d < rests.size(); ++d) {
      if (std::ranges::binary_search(rests[d].workers, w.member.worker)) pool = d;
    }
    pools[pool].members.push_back(i);
    pools[pool].samples += w.share;
  }
  if (rests.empty()) pools.front().samples = view.rules.global_batch;
  return pools;
}

std::vector<Class> classes_of(const ClusterView& view, const std::vector<Pool>& pools) {
  std::vector<Class> classes;
  for (const DeviceCurve& curve : view.curves) {
    const DeviceModel model(curve.points, Dd::kEnough);
    for (std::size_t domain = 0; domain < pools.size(); ++domain) {
      const Pool& pool = pools[domain];
      Class c{curve.device_class, domain, {}, model, 1, 1};
      for (const std::size_t i : pool.members) {
        const WorkerView& w = view.workers[i];
        if (curve_class(w.device_class, w.host) == c.name) c.members.push_back(i);
      }
      if (c.members.empty()) continue;
      c.least = c.most = view.rules.base;
      if (view.rules.adjust != Adjust::kAccumulation) {
        const auto workers = static_cast<std::uint32_t>(pool.members.size());
        c.least = view.rules.multiple_of;
        c.most = largest_of_use(view.rules, std::max(pool.samples / workers, 1u), curve);
      }
      classes.push_back(std::move(c));
    }
  }
  return classes;
}

// The shortest step in which each pool computes its samples; empty if one of them cannot.
std::optional<BatchesFound> search_pools(const ClusterView& view, const std::vector<Pool>& pools,
                                         const std::vector<Class>& classes,
                                         const std::vector<BatchClass>& searches) {
  BatchesFound all;
  for (std::size_t domain = 0; domain < pools.size(); ++domain) {
    std::vector<std::size_t> which;
    std::vector<BatchClass> of_pool;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].domain != domain) continue;
      which.push_back(c);
      of_pool.push_back(searches[c]);
    }
    if (which.empty()) continue;
    const auto found = search_batches(of_pool, pools[domain].samples, view.rules.multiple_of);
    if (!found) return std::nullopt;
    all.step_s = std::max(all.step_s, found->step_s);
    for (ClassBatches part : found->parts) {
      part.cls = which[part.cls];
      all.parts.push_back(part);
    }
  }
  return all;
}

// The sizes with which a class is to be measured, the largest first. If parts are not cut into
// micro-batches, the class is measured with the parts that it gets anyway.
std::vector<std::uint32_t> probes_of(const Class& c, const BatchRules& rules) {
  std::vector<std::uint32_t> sizes;
  if (rules.adjust == Adjust::kAccumulation) return sizes;
  for (std::uint32_t over = 1; over <= kSmallestProbe; over *= 2) {
    const std::uint32_t size = round_up(c.most / over, rules.multiple_of);
    if (size >= c.least && (sizes.empty() || size < sizes.back())) sizes.push_back(size);
  }
  return sizes;
}

BatchClass searched(const Class& c, const BatchRules& rules, std::uint32_t least,
                    std::uint32_t most) {
  BatchClass s;
  s.members = static_cast<std::uint32_t>(c.members.size());
  s.least = round_up(std::max(least, rules.multiple_of), rules.multiple_of);
  s.least_part = rules.min;
  s.most_accumulation = rules.adjust == Adjust::kSize ? 1 : 0;
  for (std::uint32_t b = s.least; b <= most; b += rules.multiple_of)
    s.seconds.push_back(c.model.seconds(b));
  return s;
}

// Every member goes on to compute about as much as now, because a probe only needs to learn how
// long its class takes for a size.
AdjustBatch action_of(const ClusterView& view, const std::vector<Class>& classes,
                      const BatchesFound& found) {
  AdjustBatch action;
  std::vector<std::size_t> used(classes.size(), 0);
  action.shares.resize(view.workers.size());
  for (const ClassBatches& part : found.parts) {
    for (std::uint32_t n = 0; n < part.members; ++n) {
      const std::size_t i = classes[part.cls].members[used[part.cls]++];
      action.shares[i] = {view.workers[i].member.worker, part.micro_batch * part.accumulation,
                          part.micro_batch, part.accumulation};
    }
  }
  action.because_of = action.shares.front().worker;
  double most = -1;
  for (std::size_t i = 0; i < action.shares.size(); ++i) {
    const double change = std::abs(std::log(static_cast<double>(action.shares[i].samples) /
                                            std::max(view.workers[i].share, 1u)));
    if (change <= most) continue;
    most = change;
    action.because_of = action.shares[i].worker;
  }
  return action;
}

std::string time_text(double s) {
  return s < 0.9995 ? fmt::format("{:.3g} ms", s * 1e3) : fmt::format("{:.2f} s", s);
}

std::string parts_text(const std::vector<Class>& classes, const BatchesFound& found) {
  std::string text;
  for (const ClassBatches& part : found.parts) {
    const Class& c = classes[part.cls];
    text += fmt::format("{}{} of {}: {} x {} samples in {}", text.empty() ? "" : "; ", part.members,
                        c.name.empty() ? "one class" : c.name, part.accumulation, part.micro_batch,
                        time_text(part.accumulation * c.model.seconds(part.micro_batch)));
  }
  return text;
}

// The present step time by the curves, with the parts in force.
double step_now_s(const ClusterView& view, const std::vector<Class>& classes) {
  double longest_s = 0;
  for (const Class& c : classes) {
    for (const std::size_t i : c.members) {
      const WorkerView& w = view.workers[i];
      longest_s = std::max(longest_s, w.share / w.micro_batch * c.model.seconds(w.micro_batch));
    }
  }
  return longest_s;
}

// Whether the plan in force has been measured: every class has a point for its present size.
bool is_measured(const ClusterView& view, const std::vector<Class>& classes) {
  return std::all_of(classes.begin(), classes.end(), [&](const Class& c) {
    return !c.model.empty() && std::any_of(c.members.begin(), c.members.end(), [&](std::size_t i) {
      return view.workers[i].micro_batch > 0 && view.workers[i].measured &&
             c.model.knows(view.workers[i].micro_batch);
    });
  });
}

struct Probe {
  std::size_t cls = 0;
  std::uint32_t size = 0;
};

// Gives the probed classes micro-batches near the wished sizes, and the others whatever fits.
// Empty if these cannot be combined.
std::optional<BatchesFound> plan_probes(const ClusterView& view, const std::vector<Pool>& pools,
                                        const std::vector<Class>& classes,
                                        const std::vector<Probe>& probes) {
  const BatchRules& rules = view.rules;
  std::vector<BatchClass> searches;
  for (const Class& c : classes) searches.push_back(searched(c, rules, c.least, c.most));
  for (const Probe& p : probes) {
    const Class& c = classes[p.cls];
    const auto least = static_cast<std::uint32_t>(std::ceil(p.size / kProbeSlack));
    const auto most = static_cast<std::uint32_t>(p.size * kProbeSlack);
    searches[p.cls] =
        searched(c, rules, std::max(least, c.least), std::min(std::max(most, p.size), c.most));
  }
  return search_pools(view, pools, classes, searches);
}

// A size that one domain cannot combine to its part of a step, another may.
std::string key_of(const Class& c) { return fmt::format("{} {}", c.domain, c.name); }

std::string group_of(const ClusterView& view, const std::vector<Class>& classes) {
  std::string text = std::to_string(view.rules.global_batch);
  for (const Class& c : classes) text += fmt::format(" {}*{}<{}", c.members.size(), c.name, c.most);
  return text;
}

}  // namespace

Decision Dd::decide(const ClusterView& view, MonoTime /*now*/) {
  if (view.rules.adjust == Adjust::kNone || view.workers.empty()) return {};
  const std::vector<Pool> pools = pools_of(view);
  // A domain that is done computes nothing; soon all are.
  if (std::ranges::any_of(pools, [](const Pool& p) { return p.samples == 0; })) return {};
  const std::vector<Class> classes = classes_of(view, pools);
  if (classes.empty() || !is_measured(view, classes)) return {};
  if (std::string group = group_of(view, classes); group != group_) {
    group_ = std::move(group);
    unreachable_.clear();
  }
  std::vector<Probe> probes;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const std::uint32_t size : probes_of(classes[i], view.rules)) {
      const bool wanted =
          !classes[i].model.knows(size) && !unreachable_.contains({key_of(classes[i]), size});
      if (!wanted) continue;
      probes.push_back({i, size});
      break;
    }
  }
  while (!probes.empty()) {
    if (const auto found = plan_probes(view, pools, classes, probes)) {
      return {{action_of(view, classes, *found)},
              fmt::format("measures how long micro-batches take: {}", parts_text(classes, *found))};
    }
    const Probe last = probes.back();
    if (probes.size() == 1) unreachable_.emplace(key_of(classes[last.cls]), last.size);
    probes.pop_back();
  }
  std::vector<BatchClass> searches;
  for (const Class& c : classes) {
    const std::uint32_t most = std::min(c.most, 2 * c.model.largest());
    searches.push_back(searched(c, view.rules, c.least, most));
  }
  const auto found = search_pools(view, pools, classes, searches);
  if (!found) return {};
  const double now_s = step_now_s(view, classes);
  const bool wanted = now_s > (1 + kLeastGain) * found->step_s;
  const bool confirmed = wanted && wanted_before_;
  wanted_before_ = wanted && !confirmed;
  if (!confirmed) return {};
  return {{action_of(view, classes, *found)},
          fmt::format("step expected {} -> {} ({})", time_text(now_s), time_text(found->step_s),
                      parts_text(classes, *found))};
}

}  // namespace antdt::ctl::solutions
