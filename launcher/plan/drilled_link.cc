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

}  // namespace

std::optional<Link> drilled_link(const JobConfig& config, std::vector<std::string>& notes) {
  std::optional<Link> link;
  bool left_out = false;
  for (const Injection& rule : config.inject) {
    if (!always(rule) || !slows_all_links(config, rule)) {
      left_out = true;
      continue;
    }
    if (!link) link = Link{0, 0, true, false, "the drill of job.toml"};
    link->latency_s += static_cast<double>(rule.latency.count()) / 1e6;
    const auto bandwidth = static_cast<double>(rule.bandwidth);
    if (bandwidth > 0 && (link->bytes_per_s == 0 || bandwidth < link->bytes_per_s)) {
      link->bytes_per_s = bandwidth;
    }
    // "*" are all workers; a rule of a host concerns its servers, too.
    link->answers_held_back |=
        rule.workers.empty() || std::ranges::any_of(rule.workers, [](const std::string& name) {
          return name.starts_with("s");
        });
  }
  if (left_out) {
    notes.emplace_back(
        "drills other than those that slow the links of all workers all the time are left out");
  }
  return link;
}

}  // namespace antdt::launcher::plan
