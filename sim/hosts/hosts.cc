#include "sim/hosts/hosts.h"

#include <algorithm>

namespace antdt::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

MonoTime Clocks::base() {
  if (!apart_) return world_.now();
  const bool long_ago = world_.rng().chance(0.5);  // whether it was started long ago
  return MonoTime(world_.rng().time(milliseconds(1), seconds(long_ago ? 10'000'000 : 10)));
}

HostClock Clocks::make() {
  const double rate = apart_ ? 0.98 + 0.0001 * static_cast<double>(world_.rng().below(401)) : 1.0;
  return {world_, base(), rate};
}

Hosts::Hosts(World& world, Clocks& clocks, std::uint32_t processes, const Host::Outside& outside) {
  const auto count = static_cast<std::uint32_t>(world.rng().between(2, 4));
  const auto spare = static_cast<std::uint32_t>(world.rng().between(0, 3));
  const std::uint32_t each = (processes + spare + count - 1) / count;
  for (std::uint32_t i = 0; i < count; ++i) {
    hosts_.push_back(
        std::make_unique<Host>(world, clocks.make(), fmt::format("h{}", i), each, outside));
  }
}

Host& Hosts::at(const std::string& name) {
  return **std::ranges::find(hosts_, name, [](const auto& h) { return h->name(); });
}

std::vector<std::string> Hosts::names() const {
  std::vector<std::string> names;
  for (const auto& host : hosts_) names.push_back(host->name());
  return names;
}

std::uint32_t Hosts::slots() const {
  std::uint32_t slots = 0;
  for (const auto& host : hosts_) slots += host->slots();
  return slots;
}

std::vector<std::shared_ptr<Program>> Hosts::programs() const {
  std::vector<std::shared_ptr<Program>> all;
  for (const auto& host : hosts_) {
    for (auto& program : host->living()) all.push_back(std::move(program));
  }
  return all;
}

std::vector<std::shared_ptr<Worker>> Hosts::living() const {
  std::vector<std::shared_ptr<Worker>> all;
  for (const auto& program : programs()) {
    if (auto worker = std::dynamic_pointer_cast<Worker>(program)) all.push_back(std::move(worker));
  }
  return all;
}

std::shared_ptr<Worker> Hosts::worker(WorkerId id) const {
  std::shared_ptr<Worker> newest;
  for (auto& worker : living()) {
    if (worker->member().worker != id) continue;
    if (!newest || newest->member().attempt < worker->member().attempt) newest = worker;
  }
  return newest;
}

}  // namespace antdt::sim
