#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "launcher/doctor/judge.h"

namespace antdt::launcher {
namespace {

// A link is slow if it has less than this part of what the better links have, or less than any
// network for training should have.
constexpr double kSlowPart = 0.5;
constexpr double kSlowMegabits = 100;
// Its round trip is long if it is so many times the usual one, and this much more at least.
constexpr double kLongTimes = 4;
constexpr double kLongUs = 2000;
// How many links say something about a host.
constexpr std::ptrdiff_t kSeveral = 2;

using Which = std::function<bool(const LinkFacts&)>;

bool failed(const LinkFacts& link) {
  return !link.listen_error.empty() || !link.connect_error.empty();
}

std::string link_name(const Facts& facts, const LinkFacts& link) {
  return fmt::format("{} -> {}", label(facts.hosts[link.from]), label(facts.hosts[link.to]));
}

// The value that a part of them does not exceed; 0 of none.
double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(part * last + 0.5)];
}

std::string bandwidth_text(double value) {
  return value >= 1000 ? fmt::format("{:.1f} Gbit/s", value / 1000)
                       : fmt::format("{:.1f} Mbit/s", value);
}

// Hosts of which all links in one direction are `bad`.
std::vector<std::size_t> hosts_where_all(const Facts& facts, std::size_t LinkFacts::*end,
                                         const Which& bad) {
  std::vector<std::size_t> hosts;
  for (std::size_t i = 0; i < facts.hosts.size(); ++i) {
    const auto is_of = [&](const LinkFacts& link) { return link.*end == i; };
    const auto of = std::ranges::count_if(facts.links, is_of);
    const auto wrong = std::ranges::count_if(
        facts.links, [&](const LinkFacts& link) { return is_of(link) && bad(link); });
    if (of >= kSeveral && wrong == of) hosts.push_back(i);
  }
  return hosts;
}

std::string ports_text(const Facts& facts) {
  return facts.ports.empty() ? "any port (cluster.ports is not set)"
                             : fmt::format("a port of cluster.ports, {}", facts.ports);
}

Finding unreachable(const Facts& facts, const LinkFacts& link) {
  const bool cannot_listen = !link.listen_error.empty();
  return {Level::kError,
          link_name(facts, link),
          "link",
          fmt::format("a tcp connection to the address of {}, {}", label(facts.hosts[link.to]),
                      ports_text(facts)),
          cannot_listen ? link.listen_error : link.connect_error,
          "workers of the two hosts exchange gradients and training state over such connections: "
          "a job with workers on both cannot form its group",
          cannot_listen ? "give that host's antdtd the --address or --interface by which others "
                          "reach it, and cluster.ports that are free there"
          : facts.ports.empty()
              ? "set cluster.ports, and let these tcp ports through between the two hosts"
              : fmt::format("let tcp ports {} through between the two hosts (nft, iptables, "
                            "firewalld, the cloud's security group), and see ip route get",
                            facts.ports)};
}

Finding slow_link(const std::string& name, double found, double usual) {
  return {Level::kWarning,
          name,
          "link",
          "the bandwidth of one tcp connection",
          fmt::format("{}, where the better links have {}", bandwidth_text(found),
                      bandwidth_text(usual)),
          "each step of an all-reduce job takes as long as its slowest link",
          "look at both ends: ethtool (speed, duplex), ip -s link (errors, drops), tc qdisc, and "
          "the switch's port; or leave the host out"};
}

void judge_failed(const Facts& facts, Findings& findings) {
  const std::vector<std::size_t> cut_off = hosts_where_all(facts, &LinkFacts::to, failed);
  for (const LinkFacts& link : facts.links) {
    if (!failed(link)) continue;
    const bool of_all = std::ranges::find(cut_off, link.to) != cut_off.end();
    const auto first = std::ranges::find_if(
        facts.links, [&](const LinkFacts& other) { return other.to == link.to; });
    if (of_all && &*first != &link) continue;
    findings.push_back(unreachable(facts, link));
    if (of_all) findings.back().subject = "all hosts -> " + label(facts.hosts[link.to]);
  }
}

void judge_slow(const Facts& facts, Findings& findings) {
  std::vector<double> speeds;
  for (const LinkFacts& link : facts.links) {
    if (!failed(link)) speeds.push_back(megabits(link));
  }
  // The better ones: where one host of three is slow, most links are.
  const double usual = quantile(speeds, 0.75);
  const Which slow = [&](const LinkFacts& link) {
    return !failed(link) && megabits(link) < std::max(kSlowPart * usual, kSlowMegabits);
  };
  if (!speeds.empty() && *std::ranges::max_element(speeds) < kSlowMegabits) {
    findings.push_back(slow_link("all hosts", *std::ranges::min_element(speeds), usual));
    findings.back().found += ", which is little for training";
    return;
  }
  const auto senders = hosts_where_all(facts, &LinkFacts::from, slow);
  const auto receivers = hosts_where_all(facts, &LinkFacts::to, slow);
  const auto worst_of = [&](std::size_t LinkFacts::*end, std::size_t host) {
    double worst = usual;
    for (const LinkFacts& link : facts.links) {
      if (link.*end == host && !failed(link)) worst = std::min(worst, megabits(link));
    }
    return worst;
  };
  for (const std::size_t host : senders) {
    findings.push_back(slow_link(label(facts.hosts[host]) + " -> all hosts",
                                 worst_of(&LinkFacts::from, host), usual));
  }
  for (const std::size_t host : receivers) {
    findings.push_back(slow_link("all hosts -> " + label(facts.hosts[host]),
                                 worst_of(&LinkFacts::to, host), usual));
  }
  for (const LinkFacts& link : facts.links) {
    const bool told = std::ranges::find(senders, link.from) != senders.end() ||
                      std::ranges::find(receivers, link.to) != receivers.end();
    if (slow(link) && !told) {
      findings.push_back(slow_link(link_name(facts, link), megabits(link), usual));
    }
  }
}

void judge_round_trips(const Facts& facts, Findings& findings) {
  std::vector<double> times;
  for (const LinkFacts& link : facts.links) {
    if (!failed(link)) times.push_back(link.told.round_trip_us);
  }
  const double usual = quantile(times, 0.25);
  for (const LinkFacts& link : facts.links) {
    const double found = link.told.round_trip_us;
    if (failed(link) || found < kLongTimes * usual || found < usual + kLongUs) continue;
    findings.push_back(
        {Level::kWarning, link_name(facts, link), "link", "the round trip of one byte",
         fmt::format("{:.2f} ms, where the better links have {:.2f} ms", found / 1e3, usual / 1e3),
         "a step of an all-reduce job waits for several round trips",
         "see whether the way between the two is longer than it should be: ip route get, "
         "traceroute, tc qdisc"});
  }
}

}  // namespace

double megabits(const LinkFacts& link) {
  if (link.told.took_us == 0) return 0;
  return static_cast<double>(link.told.bytes) * 8 / static_cast<double>(link.told.took_us);
}

void judge_links(const Facts& facts, Findings& findings) {
  if (facts.links.empty()) return;
  judge_failed(facts, findings);
  judge_slow(facts, findings);
  judge_round_trips(facts, findings);
  if (std::ranges::any_of(facts.links, failed)) return;
  findings.push_back({Level::kOk, "all hosts", "link",
                      "tcp connections between each pair of hosts, both ways",
                      fmt::format("all {} are possible", facts.links.size()),
                      "workers connect to one another", ""});
}

}  // namespace antdt::launcher
