#include "core/drill/drill_json.h"

#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "core/json_integer.h"

namespace antdt::drill {
namespace {

using Json = nlohmann::json;

Duration us(const Json& json, const char* key) {
  return std::chrono::microseconds(json_integer<std::int64_t>(json, key, 0));
}
Duration ms(const Json& json, const char* key) {
  return std::chrono::milliseconds(json_integer<std::int64_t>(json, key, 0));
}

Rule rule_of(const Json& json) {
  Rule rule;
  rule.workers = json.value("workers", rule.workers);
  rule.host = json.value("host", "");
  rule.from = ms(json, "from_ms");
  rule.until = ms(json, "until_ms");
  rule.every = ms(json, "every_ms");
  rule.lasts = ms(json, "for_ms");
  rule.chance = json.value("chance", 1.0);
  rule.slowdown = json.value("slowdown", 1.0);
  rule.delay = us(json, "delay_us");
  rule.delay_per_sample = us(json, "delay_per_sample_us");
  rule.data_delay = us(json, "data_delay_us");
  rule.trace = json.value("trace", "");
  rule.trace_every = ms(json, "trace_every_ms");
  rule.latency = us(json, "latency_us");
  rule.bandwidth = json_integer<std::uint64_t>(json, "bandwidth_bytes", 0);
  rule.throttle = json.value("throttle", 1.0);
  rule.kill = json.value("kill", false);
  return rule;
}

Device device_of(const Json& json) {
  Device device;
  device.name = json.value("class", "");
  device.workers = json.value("workers", device.workers);
  device.flat = us(json, "flat_us");
  device.flat_until = json_integer<std::uint32_t>(json, "flat_until", 0);
  device.per_sample = us(json, "per_sample_us");
  device.memory = json_integer<std::uint32_t>(json, "memory", 0);
  return device;
}

// read(part) of the part of that name; a default value without it.
template <class T, class F>
Result<T> read_part(const std::string& config_json, const char* name, F read) {
  try {
    const Json json = Json::parse(config_json);
    const auto part = json.find(name);
    if (part == json.end() || part->is_null()) return T{};
    return read(*part);
  } catch (const Json::exception& e) {
    return fail(ErrorKind::kUsage, "cannot read \"{}\" of the job's configuration: {}", name,
                e.what());
  }
}

}  // namespace

Result<std::vector<Rule>> parse_rules(const std::string& config_json) {
  using Rules = std::vector<Rule>;
  return read_part<Rules>(config_json, "inject", [](const Json& list) {
    Rules rules;
    for (const Json& rule : list) rules.push_back(rule_of(rule));
    return rules;
  });
}

Result<Emulation> parse_emulation(const std::string& config_json) {
  return read_part<Emulation>(config_json, "emulated", [](const Json& json) {
    Emulation emulation;
    emulation.noise = json.value("noise", 0.0);
    emulation.parameters = std::max(1U, json_integer<std::uint32_t>(json, "parameters", 1));
    for (const Json& device : json.value("device", Json::array())) {
      emulation.devices.push_back(device_of(device));
    }
    return emulation;
  });
}

Result<std::uint64_t> parse_seed(const std::string& config_json) {
  return read_part<std::uint64_t>(config_json, "job", [](const Json& job) {
    return json_integer<std::uint64_t>(job, "seed", 0);
  });
}

Result<Traces> read_traces(const std::vector<Rule>& rules) {
  Traces traces;
  for (const Rule& rule : rules) {
    if (rule.trace.empty() || traces.contains(rule.trace)) continue;
    ANTDT_TRY(const std::string text, read_file(rule.trace));
    auto trace = Trace::parse(text);
    if (!trace) {
      return fail(ErrorKind::kUsage, "{} is no trace to replay: {}", rule.trace,
                  trace.error().message);
    }
    traces.emplace(rule.trace, std::make_shared<const Trace>(std::move(*trace)));
  }
  return traces;
}

}  // namespace antdt::drill
