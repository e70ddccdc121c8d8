#include "bench/stragglers/situations.h"

#include <fmt/format.h>

namespace antdt::stragglers {
namespace {

using std::chrono::microseconds;

drill::Device device(std::string name, std::vector<std::string> workers, microseconds per_sample,
                     std::uint32_t memory) {
  drill::Device d;
  d.name = std::move(name);
  d.workers = std::move(workers);
  d.flat_until = 2;  // the time is the same for one and for two samples
  d.flat = 2 * per_sample;
  d.per_sample = per_sample;
  d.memory = memory;
  return d;
}

// Equal devices: 64 ms for an equal part of 32 samples.
Situation alike(std::string name, std::string what, double noise = 0.02) {
  Situation s;
  s.name = std::move(name);
  s.what = std::move(what);
  s.emulation.noise = noise;
  s.emulation.parameters = 64;
  s.emulation.devices = {device("any", {}, microseconds(2000), 0)};
  return s;
}

drill::Rule slow(std::vector<std::string> workers, double slowdown) {
  drill::Rule rule;
  rule.workers = std::move(workers);
  rule.slowdown = slowdown;
  return rule;
}

// Slow for a tenth of the time: during one of every ten persistent windows, at a random moment.
drill::Rule slow_tenths(std::vector<std::string> workers, double slowdown, const Windows& windows) {
  drill::Rule rule = slow(std::move(workers), slowdown);
  rule.every = 10 * windows.persistent;
  rule.lasts = windows.persistent;
  return rule;
}

Situation transient(const Windows& windows) {
  Situation s = alike("transient", "two of 8 workers at 1/3 for random tenths of the time");
  s.rules = {slow_tenths({"w1", "w2"}, 3, windows)};
  return s;
}

Situation persistent() {
  Situation s = alike("persistent", "one of 8 workers at 1/3 all along");
  s.rules = {slow({"w0"}, 3)};
  return s;
}

Situation mix(std::string name, const Windows& windows) {
  Situation s =
      alike(std::move(name),
            "one of 8 workers at 1/8 all along, two more at 1/3 for random tenths of the time");
  s.rules = {slow({"w0"}, 8), slow_tenths({"w1", "w2"}, 3, windows)};
  return s;
}

Situation two_classes() {
  Situation s =
      alike("two-classes", "4 devices 2.5 times as fast as the other 4, with less memory");
  s.emulation.devices = {device("slow", {"w0", "w1", "w2", "w3"}, microseconds(4000), 64),
                         device("fast", {}, microseconds(1600), 32)};
  return s;
}

// The faster a device is, the fewer samples fit its memory, so the parts that suit its speed
// consist of several micro-batches.
Situation three_classes() {
  Situation s = alike("three-classes",
                      "speeds 1 : 2.5 : 4 (3, 3 and 2 devices), memory for 64, 48 and 32 samples");
  s.global_batch = 512;
  s.emulation.devices = {device("slow", {"w0", "w1", "w2"}, microseconds(4000), 64),
                         device("middle", {"w3", "w4", "w5"}, microseconds(1600), 48),
                         device("fast", {}, microseconds(1000), 32)};
  return s;
}

Situation pai(int job, std::string what, const std::string& traces) {
  Situation s = alike(fmt::format("pai-{}", job), std::move(what));
  s.workers = 10;
  s.global_batch = 320;
  if (traces.empty()) {
    s.lacks = "needs the batch times of PAI's jobs: give their directory with --traces DIR";
    return s;
  }
  drill::Rule replay;
  replay.workers = {"*"};
  replay.trace = fmt::format("{}/job_{}_norm.csv", traces, job);
  s.rules = {replay};
  return s;
}

// Each request takes a server 2 ms; s0 takes 6 ms while it runs on the first host.
Situation slow_server() {
  Situation s = alike("slow-server", "one of two parameter servers at 1/3 on the host it began on");
  s.sync = "ps-bsp";
  s.hosts = {"one", "other"};
  s.servers = 2;
  s.service = std::chrono::milliseconds(2);
  drill::Rule takes;
  takes.workers = {"s0", "s1", "s2", "s3"};
  takes.delay = s.service;
  drill::Rule slower;
  slower.workers = {"s0"};
  slower.host = s.hosts.front();
  slower.delay = 2 * s.service;
  s.rules = {takes, slower};
  return s;
}

}  // namespace

std::vector<Situation> situations(const Windows& windows, const std::string& traces) {
  Situation mix_ps = mix("mix-ps", windows);
  mix_ps.what += ", with a parameter server";
  mix_ps.sync = "ps-bsp";
  return {alike("none", "8 alike workers, 10% noise", 0.10),
          transient(windows),
          persistent(),
          two_classes(),
          three_classes(),
          pai(1, "PAI's job 1 replayed: a straggler that appears while it runs", traces),
          pai(2, "PAI's job 2 replayed: steady differences", traces),
          pai(4, "PAI's job 4 replayed: two groups of speeds with heavy tails", traces),
          mix("mix", windows),
          mix_ps,
          slow_server()};
}

}  // namespace antdt::stragglers
