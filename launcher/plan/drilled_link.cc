#include "launcher/plan/drilled_link.h"

#include <algorithm>

namespace antdt::launcher::plan {
namespace {

bool always(const Injection& rule) {
  return rule.from.count() == 0 && rule.until.count() == 0 && rule.every.count() == 0 &&
         rule.chance == 1;
}

// Whether it slows all messages of all workers. On one machine a host's name is that of all.
bool slows_all_links(const JobConfig& config, const Injection& rule) {
  const bool slows = rule.latency.count() > 0 || rule.bandwidth > 0;
  const bool to_all = rule.to_workers.empty() && rule.to_host.empty() && rule.to_domain.empty();
  const bool everywhere =
      rule.domain.empty() && (rule.host.empty() || config.cluster.hosts.empty());
  const bool of_all =
      rule.workers.empty() || std::ranges::find(rule.workers, "*") != rule.workers.end();
  return slows && to_all && everywhere && of_all;
}

// Whether it slows all messages from one domain to another one.
bool slows_between(const Injection& rule) {
  return always(rule) && (rule.latency.count() > 0 || rule.bandwidth > 0) && !rule.domain.empty() &&
         !rule.to_domain.empty() && rule.domain != rule.to_domain && rule.workers.empty() &&
         rule.host.empty() && rule.to_workers.empty() && rule.to_host.empty();
}

double latency_of(const Injection& rule) { return static_cast<double>(rule.latency.count()) / 1e6; }

void bound(Link& link, double bytes_per_s) {
  if (bytes_per_s > 0 && (link.bytes_per_s == 0 || bytes_per_s < link.bytes_per_s)) {
    link.bytes_per_s = bytes_per_s;
  }
}

}  // namespace

std::optional<Link> drilled_link(const JobConfig& config, std::vector<std::string>& notes) {
  std::optional<Link> link;
  bool left_out = false;
  for (const Injection& rule : config.inject) {
    if (slows_between(rule)) continue;
    if (!always(rule) || !slows_all_links(config, rule)) {
      left_out = true;
      continue;
    }
    if (!link) link = Link{0, 0, true, false, "the drill of job.toml"};
    link->latency_s += latency_of(rule);
    bound(*link, static_cast<double>(rule.bandwidth));
    // "*" are all workers; a rule of a host concerns its servers, too.
    link->answers_held_back |=
        rule.workers.empty() || std::ranges::any_of(rule.workers, [](const std::string& name) {
          return name.starts_with("s");
        });
  }
  if (left_out) {
    notes.emplace_back(
        "drills other than those that slow the links of all workers, or those between two domains, "
        "all the time are left out");
  }
  return link;
}

std::optional<Link> drilled_between(const JobConfig& config) {
  std::optional<Link> link;
  for (const Injection& rule : config.inject) {
    if (!slows_between(rule)) continue;
    if (!link) link = Link{.name = "the drill between domains of job.toml"};
    link->latency_s = std::max(link->latency_s, latency_of(rule));
    bound(*link, static_cast<double>(rule.bandwidth));
  }
  return link;
}

Link behind(const Link& drill, Link measured) {
  measured.name = drill.name;
  measured.latency_s += drill.latency_s;
  bound(measured, drill.bytes_per_s);
  return measured;
}

bool drills_pairs(const JobConfig& config) {
  return std::ranges::any_of(config.inject, [](const Injection& rule) {
    return !rule.to_workers.empty() || !rule.to_host.empty() || !rule.to_domain.empty();
  });
}

}  // namespace antdt::launcher::plan
