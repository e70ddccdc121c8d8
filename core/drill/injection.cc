#include "core/drill/injection.h"

#include <algorithm>

#include "core/permutation.h"

namespace antdt::drill {
namespace {

// In [0, 1).
double uniform(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(combine_seed(combine_seed(seed, a), b) >> 11) * 0x1p-53;
}
constexpr std::uint64_t kPick = 1;
constexpr std::uint64_t kPlace = 2;

// The seed of a rule for a host or a domain is the same for every process there.
std::uint64_t seed_of(const Rule& rule, const Target& target) {
  std::uint64_t seed = 0;
  if (rule.host.empty() && rule.domain.empty()) {
    return combine_seed(static_cast<unsigned char>(target.worker.role), target.worker.index);
  }
  for (const char c : rule.host + rule.domain) {
    seed = combine_seed(seed, static_cast<unsigned char>(c));
  }
  return seed;
}

// A window of a rule: the number of the one that contains `at`, and when the rule begins and ends
// to apply in it. `at` must not be before rule.from.
struct Window {
  std::uint64_t number = 0;
  Duration begin{};
  Duration end{};
  bool picked = false;
};
Window window_of(const Rule& rule, std::uint64_t seed, std::uint64_t number) {
  Window window{number, rule.from + rule.every * static_cast<std::int64_t>(number), {}, true};
  const Duration lasts = rule.lasts > Duration{} ? std::min(rule.lasts, rule.every) : rule.every;
  window.begin +=
      from_seconds(to_seconds(rule.every - lasts) * uniform(seed, kPlace, window.number));
  window.end = window.begin + lasts;
  window.picked = uniform(seed, kPick, window.number) < rule.chance;
  return window;
}

bool selects(const std::vector<std::string>& workers, const std::string& host,
             const std::string& domain, const Target& target) {
  if (!host.empty() && host != target.host) return false;
  if (!domain.empty() && domain != target.domain) return false;
  if (workers.empty()) return !host.empty() || !domain.empty();
  const std::string id = to_string(target.worker);
  return std::ranges::any_of(workers, [&](const std::string& name) {
    return name == id || (name == "*" && target.worker.role == 'w');
  });
}

bool is_about_pairs(const Rule& rule) {
  return !rule.to_workers.empty() || !rule.to_host.empty() || !rule.to_domain.empty();
}

bool names_receiver(const Rule& rule, const Target& target) {
  return selects(rule.to_workers, rule.to_host, rule.to_domain, target);
}

// Whether a rule about pairs is about messages of `from` to `to`; null: it is not known to whom.
bool names_pair(const Rule& rule, const Target& from, const Target* to) {
  if (to == nullptr) return false;
  return (names(rule, from) && names_receiver(rule, *to)) ||
         (rule.both_ways && names_receiver(rule, from) && names(rule, *to));
}

// A rule about pairs without effects on the process itself.
Rule of_links(Rule rule) {
  const Rule none;
  rule.slowdown = none.slowdown;
  rule.delay = none.delay;
  rule.delay_per_sample = none.delay_per_sample;
  rule.data_delay = none.data_delay;
  rule.trace.clear();
  rule.throttle = none.throttle;
  rule.kill = none.kill;
  return rule;
}

}  // namespace

bool names(const Rule& rule, const Target& target) {
  return selects(rule.workers, rule.host, rule.domain, target);
}

bool slows_links(const Rule& rule) { return rule.latency > Duration{} || rule.bandwidth > 0; }

bool slows_between_domains(const Rule& rule) {
  return slows_links(rule) && !rule.domain.empty() && !rule.to_domain.empty() &&
         rule.domain != rule.to_domain;
}

Injection::Injection(const std::vector<Rule>& rules, const Target& target, std::uint64_t seed,
                     const Traces& traces)
    : self_(target), traces_(traces) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const bool sends = rules[i].both_ways && names_receiver(rules[i], target);
    if (!sends && !names(rules[i], target)) continue;
    Active active{is_about_pairs(rules[i]) ? of_links(rules[i]) : rules[i],
                  combine_seed(combine_seed(seed, i), seed_of(rules[i], target)),
                  {}};
    const auto trace = traces_.find(active.rule.trace);
    if (trace != traces_.end()) active.slowdowns = &trace->second->slowdowns(target.worker.index);
    rules_.push_back(std::move(active));
  }
}

bool Injection::holds(const Active& a, Duration at, std::uint64_t step) {
  const Rule& rule = a.rule;
  if (at < rule.from || (rule.until > Duration{} && at >= rule.until)) return false;
  if (rule.every <= Duration{}) {
    return rule.chance >= 1 || uniform(a.seed, kPick, step) < rule.chance;
  }
  const auto number = static_cast<std::uint64_t>((at - rule.from) / rule.every);
  const Window window = window_of(rule, a.seed, number);
  return window.picked && at >= window.begin && at < window.end;
}

Duration Injection::delay(const Batch& batch) const {
  Duration added{};
  double slowdown = 1;
  for (const Active& a : rules_) {
    if (!holds(a, batch.began, batch.step)) continue;
    const Rule& rule = a.rule;
    added += rule.delay + rule.delay_per_sample * static_cast<std::int64_t>(batch.samples);
    slowdown *= rule.slowdown;
    if (a.slowdowns == nullptr) continue;
    const bool by_time = rule.trace_every > Duration{};
    const auto row = by_time
                         ? static_cast<std::uint64_t>((batch.began - rule.from) / rule.trace_every)
                         : batch.step;
    slowdown *= (*a.slowdowns)[row % a.slowdowns->size()];
  }
  const auto slowed = from_seconds(to_seconds(batch.took + added) * slowdown);
  return std::max(Duration{}, slowed - batch.took);
}

Duration Injection::data_delay(Duration at, std::uint64_t step) const {
  Duration added{};
  for (const Active& a : rules_) {
    if (holds(a, at, step)) added += a.rule.data_delay;
  }
  return added;
}

bool Injection::slows_links() const {
  return std::ranges::any_of(rules_, [](const Active& a) { return drill::slows_links(a.rule); });
}

LinkDelay Injection::link_delay(Duration at, std::uint64_t step, std::uint64_t bytes,
                                const Target* to) const {
  LinkDelay delay;
  for (const Active& a : rules_) {
    if (!drill::slows_links(a.rule) || !holds(a, at, step)) continue;
    const bool pair = is_about_pairs(a.rule);
    if (pair && !names_pair(a.rule, self_, to)) continue;
    Duration transfer{};
    if (a.rule.bandwidth > 0) {
      transfer = from_seconds(static_cast<double>(bytes) / static_cast<double>(a.rule.bandwidth));
    }
    if (pair) {
      delay.latency += a.rule.latency;
      delay.transfer += transfer;
    } else {
      delay.held += a.rule.latency + transfer;
    }
  }
  return delay;
}

double Injection::throttle(Duration at) const {
  double share = 1;
  for (const Active& a : rules_) {
    if (a.rule.throttle < 1 && holds(a, at, 0)) share = std::min(share, a.rule.throttle);
  }
  return share;
}

bool Injection::kills(Duration after, Duration until) const {
  const auto between = [&](Duration moment) { return moment > after && moment <= until; };
  return std::ranges::any_of(rules_, [&](const Active& a) {
    const Rule& rule = a.rule;
    if (!rule.kill || until < rule.from) return false;
    if (rule.every <= Duration{}) return self_.attempt == Attempt{1} && between(rule.from);
    const auto first = std::max(after, rule.from) - rule.from;
    for (auto n = static_cast<std::uint64_t>(first / rule.every);; ++n) {
      const Window window = window_of(rule, a.seed, n);
      if (window.begin > until) return false;
      const bool in_time = rule.until <= Duration{} || window.begin < rule.until;
      if (window.picked && in_time && between(window.begin)) return true;
    }
  });
}

}  // namespace antdt::drill
