#include "core/drill/drill_json.h"

#include <algorithm>

#include "core/os/fs.h"
#include "core/schema/job_reader.h"

namespace antdt::drill {

using schema::JobReader;

Result<std::vector<Rule>> parse_rules(const std::string& config_json) {
  std::vector<Rule> rules;
  JobReader job(config_json);
  job.each("inject", [&] {
    Rule& rule = rules.emplace_back();
    job.read("inject[].workers", rule.workers);
    job.read("inject[].host", rule.host);
    job.read("inject[].domain", rule.domain);
    job.read("inject[].to_workers", rule.to_workers);
    job.read("inject[].to_host", rule.to_host);
    job.read("inject[].to_domain", rule.to_domain);
    job.read("inject[].both_ways", rule.both_ways);
    job.read("inject[].from", rule.from);
    job.read("inject[].until", rule.until);
    job.read("inject[].every", rule.every);
    job.read("inject[].for", rule.lasts);
    job.read("inject[].chance", rule.chance);
    job.read("inject[].slowdown", rule.slowdown);
    job.read("inject[].delay", rule.delay);
    job.read("inject[].delay_per_sample", rule.delay_per_sample);
    job.read("inject[].data_delay", rule.data_delay);
    job.read("inject[].trace", rule.trace);
    job.read("inject[].trace_every", rule.trace_every);
    job.read("inject[].latency", rule.latency);
    job.read("inject[].bandwidth", rule.bandwidth);
    job.read("inject[].throttle", rule.throttle);
    job.read("inject[].kill", rule.kill);
  });
  ANTDT_RETURN_IF_ERROR(job.status());
  return rules;
}

Result<Emulation> parse_emulation(const std::string& config_json) {
  Emulation emulation;
  JobReader job(config_json);
  job.read("emulated.noise", emulation.noise);
  job.read("emulated.parameters", emulation.parameters);
  emulation.parameters = std::max(1U, emulation.parameters);
  job.each("emulated.device", [&] {
    Device& device = emulation.devices.emplace_back();
    job.read("emulated.device[].class", device.name);
    job.read("emulated.device[].workers", device.workers);
    job.read("emulated.device[].flat", device.flat);
    job.read("emulated.device[].flat_until", device.flat_until);
    job.read("emulated.device[].per_sample", device.per_sample);
    job.read("emulated.device[].memory", device.memory);
  });
  ANTDT_RETURN_IF_ERROR(job.status());
  return emulation;
}

Result<std::uint64_t> parse_seed(const std::string& config_json) {
  std::uint64_t seed = 0;
  JobReader job(config_json);
  job.read("job.seed", seed);
  ANTDT_RETURN_IF_ERROR(job.status());
  return seed;
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
