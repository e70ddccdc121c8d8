#include "bench/antdt/ps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/antdt/process.h"
#include "core/clock.h"
#include "core/os/fs.h"

namespace antdt::bench {
namespace {

Result<BenchProcess> start(const PsOptions& options, const std::string& role, std::uint32_t index) {
  std::vector<std::string> arguments{"bench", role};
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  add("--dir", options.directory);
  add("--index", std::to_string(index));
  add("--workers", std::to_string(options.workers));
  add("--servers", std::to_string(options.servers));
  add("--keys", std::to_string(options.keys));
  add("--rows", std::to_string(options.rows));
  add("--dim", std::to_string(options.dim));
  add("--rule", options.rule);
  add("--sync", std::string(name_of(options.sync)));
  add("--seconds", fmt::format("{}", options.seconds));
  add("--start-ns", std::to_string(options.start_ns));
  if (options.pin) arguments.emplace_back("--pin");
  if (options.pull_only) arguments.emplace_back("--pull-only");
  return BenchProcess::start(arguments, {},
                             fmt::format("{}/{}{}.out", options.directory, role, index));
}

}  // namespace

Result<PsResult> bench_ps(const PsOptions& asked) {
  const TempDir directory;
  PsOptions options = asked;
  options.directory = directory.path();
  // Until then processes start and make the rows.
  const auto beginning =
      std::chrono::seconds(2) + 2 * std::chrono::microseconds(options.rows * options.dim / 16);
  options.start_ns = (SteadyClock().now() + beginning).time_since_epoch().count();
  std::vector<BenchProcess> servers;
  for (std::uint32_t s = 0; s < options.servers; ++s) {
    ANTDT_TRY(auto server, start(options, "ps-server", s));
    servers.push_back(std::move(server));
  }
  std::vector<BenchProcess> workers;
  for (std::uint32_t w = 0; w < options.workers; ++w) {
    ANTDT_TRY(auto worker, start(options, "ps-worker", w));
    workers.push_back(std::move(worker));
  }
  PsResult result;
  std::vector<std::uint32_t> latency;
  for (BenchProcess& worker : workers) {
    ANTDT_TRY(const std::string text, worker.printed());
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return fail(ErrorKind::kInternal, "a worker said '{}'", text);
    result.pulled_per_second += json.value("pulled", 0.0) / options.seconds;
    result.pushed_per_second += json.value("pushed", 0.0) / options.seconds;
    const auto own = json["latency_us"].get<std::vector<std::uint32_t>>();
    latency.insert(latency.end(), own.begin(), own.end());
  }
  if (latency.empty()) return fail(ErrorKind::kInternal, "nothing was pulled in the time measured");
  std::ranges::sort(latency);
  result.p50_us = latency[latency.size() / 2];
  result.p99_us = latency[latency.size() * 99 / 100];
  return result;
}

std::string to_json(const PsOptions& options, const PsResult& r) {
  return nlohmann::json{
      {"workers", options.workers},
      {"servers", options.servers},
      {"keys", options.keys},
      {"dim", options.dim},
      {"rows", options.rows},
      {"rule", options.rule},
      {"sync", name_of(options.sync)},
      {"pin", options.pin},
      {"seconds", options.seconds},
      {"rows_per_second", {{"pulled", r.pulled_per_second}, {"pushed", r.pushed_per_second}}},
      {"p50_us", r.p50_us},
      {"p99_us", r.p99_us}}
      .dump();
}

std::string to_table(const PsOptions& options, const PsResult& r) {
  return fmt::format(
      "{} workers, {} server{}, {} keys of {} floats a batch, {}{}, {:g} s\n"
      "  rows pulled/s {:>12.0f}\n"
      "  rows pushed/s {:>12.0f}\n"
      "  pull p50      {:>9} us\n"
      "  pull p99      {:>9} us\n",
      options.workers, options.servers, options.servers == 1 ? "" : "s", options.keys, options.dim,
      options.sync, options.pull_only ? ", pulls only" : "", options.seconds, r.pulled_per_second,
      r.pushed_per_second, r.p50_us, r.p99_us);
}

}  // namespace antdt::bench
