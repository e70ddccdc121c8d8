#include "launcher/commands/doctor/pairs.h"

#include <future>
#include <utility>

#include "core/crypto/secret.h"
#include "core/os/net.h"
#include "core/wire/inspect_messages.h"

namespace antdt::cli {
namespace {

using launcher::Facts;
using launcher::LinkFacts;
using Links = std::vector<std::optional<jobd::HostFiles>>;

constexpr std::uint32_t kSendMs = 400;
constexpr Duration kMeasured = std::chrono::seconds(20);

Result<std::string> new_secret() {
  ANTDT_TRY(const auto first, crypto::Secret::random());
  ANTDT_TRY(const auto second, crypto::Secret::random());
  return first.for_wire() + second.for_wire();
}

LinkFacts measure_one(Links& links, const Facts& facts, std::size_t from, std::size_t to) {
  LinkFacts link;
  link.from = from;
  link.to = to;
  const auto secret = new_secret();
  if (!secret) {
    link.listen_error = secret.error().message;
    return link;
  }
  const std::string& address = facts.hosts[to].welcome->address;
  const auto opened =
      links[to]->ask<wire::FilePortOpen>(wire::FilePort{address, facts.ports, *secret}, kMeasured);
  if (!opened) {
    link.listen_error = opened.error().message;
    return link;
  }
  const auto told = links[from]->ask<wire::FileLinkTold>(
      wire::FileLink{with_port(address, static_cast<std::uint16_t>(opened->port)), *secret, kSendMs,
                     wire::kMostLinkBytes},
      kMeasured);
  if (told) {
    link.told = *told;
  } else {
    link.connect_error = told.error().message;
  }
  return link;
}

// The pairs of a round: each of `count` (even) hosts meets each other one once in count - 1 rounds.
// One stays where it is, and the others turn around it.
std::vector<std::pair<std::size_t, std::size_t>> round_of(std::size_t count, std::size_t round) {
  const auto at = [&](std::size_t place) {
    return place == 0 ? 0 : 1 + (place - 1 + round) % (count - 1);
  };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < count / 2; ++i) pairs.emplace_back(at(i), at(count - 1 - i));
  return pairs;
}

}  // namespace

void measure_pairs(Links& links, Facts& facts) {
  std::vector<std::size_t> hosts;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i] && facts.hosts[i].welcome) hosts.push_back(i);
  }
  const std::size_t count = hosts.size() + hosts.size() % 2;
  for (std::size_t round = 0; round + 1 < count; ++round) {
    std::vector<std::future<std::pair<LinkFacts, LinkFacts>>> running;
    for (const auto& [one, other] : round_of(count, round)) {
      if (one >= hosts.size() || other >= hosts.size()) continue;  // this one has a pause
      running.push_back(
          std::async(std::launch::async, [&links, &facts, a = hosts[one], b = hosts[other]] {
            LinkFacts there = measure_one(links, facts, a, b);
            return std::pair(std::move(there), measure_one(links, facts, b, a));
          }));
    }
    for (auto& pair : running) {
      auto [there, back] = pair.get();
      // Facts that the others read meanwhile are those of hosts only.
      facts.links.push_back(std::move(there));
      facts.links.push_back(std::move(back));
    }
  }
}

}  // namespace antdt::cli
