// antdt-bench-allreduce: measures the all-reduce between processes of this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>

#include "trainer/collective/bench.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Measure the all-reduce between processes of this machine.");
  antdt::trainer::AllreduceBenchOptions options;
  double seconds = 2;
  bool json = false;
  app.add_option("--ranks", options.ranks, "processes")->check(CLI::Range(1, 1024));
  app.add_option("--bytes", options.bytes, "bytes that each call reduces")
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 34U));
  app.add_option("--seconds", seconds, "how long to measure")->check(CLI::Range(0.01, 3600.0));
  app.add_flag("--encrypt", options.encrypt, "as cluster.encrypt = true does");
  using antdt::trainer::Backend;
  const std::map<std::string, Backend> backends{{"tcp", Backend::kTcp}, {"shm", Backend::kShm}};
  app.add_option("--collective", options.backend, "what carries the bytes: tcp (default) or shm")
      ->transform(CLI::CheckedTransformer(backends));
  app.add_flag("--json", json, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  options.duration = antdt::from_seconds(seconds);

  const auto result = antdt::trainer::bench_allreduce(options);
  if (!result) {
    fmt::print(stderr, "antdt-bench-allreduce: {}\n", result.error().message);
    return result.error().kind == antdt::ErrorKind::kUsage ? 2 : 1;
  }
  if (json) {
    fmt::print("{}\n", antdt::trainer::to_json(*result));
    return 0;
  }
  fmt::print("{} ranks, {} bytes, {} calls\n", result->ranks, result->bytes, result->calls);
  fmt::print("algorithm bandwidth  {:8.3f} GB/s\n", result->algorithm_bytes_per_s / 1e9);
  fmt::print("bus bandwidth        {:8.3f} GB/s\n", result->bus_bytes_per_s / 1e9);
  fmt::print("a call               {:8.1f} us median, {:.1f} us p99\n", result->p50_us,
             result->p99_us);
  fmt::print("copies of all ranks  {:8.1f} us for the bytes that must move\n", result->copies_us);
  fmt::print("memcpy, one thread   {:8.3f} GB/s\n", result->memcpy_bytes_per_s / 1e9);
  return 0;
}
