#include "trainer/injected/injected.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "core/domain/domains.h"
#include "core/drill/drill_json.h"
#include "core/permutation.h"

namespace antdt::trainer {
namespace {

// The order's rules, each of which ends with the order at the latest.
Result<std::vector<drill::Rule>> rules_of(const wire::Injected& order) {
  ANTDT_TRY(auto rules, drill::parse_rules(fmt::format("{{\"inject\": {}}}", order.rules)));
  const Duration end = std::chrono::milliseconds(order.duration_ms);
  for (drill::Rule& rule : rules) {
    if (end > Duration{} && (rule.until == Duration{} || rule.until > end)) rule.until = end;
  }
  return rules;
}

}  // namespace

Result<Injected> Injected::of_job(const Clock& clock, const std::string& config_json,
                                  const drill::Target& self, Orders orders, Throttle throttle) {
  ANTDT_TRY(const auto rules, drill::parse_rules(config_json));
  ANTDT_TRY(const auto traces, drill::read_traces(rules));
  ANTDT_TRY(const std::uint64_t seed, drill::parse_seed(config_json));
  ANTDT_TRY(const Domains domains, parse_domains(config_json));
  drill::Target there = self;
  there.domain = domains.of(self.worker, self.host);
  return Injected(clock, drill::Injection(rules, there, seed, traces), std::move(orders), there,
                  seed, std::move(throttle));
}

Injected::Injected(const Clock& clock, drill::Injection rules, Orders orders,
                   const drill::Target& self, std::uint64_t seed, Throttle throttle)
    : clock_(clock),
      orders_(std::move(orders)),
      self_(self),
      seed_(seed),
      say_throttle_(std::move(throttle)),
      link_(std::make_shared<InjectedLink>(clock)) {
  job_.rules = std::move(rules);
}

void Injected::training_began() {
  if (began_) return;
  began_ = true;
  begin(job_);
  slow_links();
  throttle();
}

void Injected::slow_links() {
  link_->use({{job_.rules, job_.start}, {ordered_.rules, ordered_.start}});
}

void Injected::throttle() {
  const MonoTime now = clock_.now();
  double share = 1;
  for (const Running* running : {&job_, &ordered_}) {
    share = std::min(share, running->rules.throttle(now - running->start));
  }
  if (share == throttled_to_ || !say_throttle_) return;
  throttled_to_ = share;
  say_throttle_(share);
}

void Injected::after_data(MonoTime began, std::uint64_t step) {
  if (!began_) return;
  obey();
  Duration added{};
  for (const Running* running : {&job_, &ordered_}) {
    added += running->rules.data_delay(std::max(Duration{}, began - running->start), step);
  }
  if (added > Duration{}) std::this_thread::sleep_for(added);
}

// So that a kill at the very start is in the first interval.
void Injected::begin(Running& running) const {
  running.start = clock_.now();
  running.asked = running.start - Duration(1);
}

void Injected::after_compute(MonoTime began, std::uint64_t step, std::uint64_t samples) {
  if (!began_) return;
  obey();
  MonoTime end = clock_.now();
  for (const Running* running : {&job_, &ordered_}) {
    // An order that came during the batch applies to it already.
    const Duration at = std::max(Duration{}, began - running->start);
    end += running->rules.delay({at, end - began, step, samples});
  }
  std::this_thread::sleep_until(end);
  link_->at_step(step);
  throttle();
  die_if_due(job_);
  die_if_due(ordered_);
}

void Injected::obey() {
  if (!orders_) return;
  const wire::Injected order = orders_();
  if (order.number <= number_) return;
  number_ = order.number;
  ordered_ = {};
  slow_links();
  auto rules = rules_of(order);
  auto traces = rules ? drill::read_traces(*rules) : tl::unexpected(rules.error());
  if (!traces) {
    fmt::print(stderr, "what is to be injected is not: {}\n", traces.error().message);
    return;
  }
  // For a rule that kills once, it does not matter how often this process was started, but whether
  // it heard the order before.
  drill::Target self = self_;
  self.attempt = Attempt{order.again ? 2U : 1U};
  ordered_.rules = drill::Injection(*rules, self, combine_seed(seed_, number_), *traces);
  begin(ordered_);
  slow_links();
}

void Injected::die_if_due(Running& running) const {
  if (running.rules.empty()) return;
  const MonoTime now = clock_.now();
  if (running.rules.kills(running.asked - running.start, now - running.start)) {
    std::raise(SIGKILL);
  }
  running.asked = now;
}

}  // namespace antdt::trainer
