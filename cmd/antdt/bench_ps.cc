#include "cmd/antdt/bench_ps.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/fs.h"
#include "core/runtime_dir.h"

namespace antdt::bench {
namespace {

// Ends its process when it goes.
class Child {
 public:
  Child(pid_t pid, std::string output) : pid_(pid), output_(std::move(output)) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  // What it said, once it has ended.
  [[nodiscard]] Result<std::string> wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    ANTDT_TRY(std::string text, read_file(output_));
    if (status == 0) return text;
    return fail(ErrorKind::kInternal, "a process of the bench failed (status {})", status);
  }

 private:
  pid_t pid_;
  std::string output_;
};

Result<Child> spawn(const PsOptions& options, const std::string& role, std::uint32_t index) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string output = fmt::format("{}/{}{}.out", options.directory, role, index);
  std::vector<std::string> command{self,
                                   "bench",
                                   role,
                                   "--dir",
                                   options.directory,
                                   "--index",
                                   std::to_string(index),
                                   "--workers",
                                   std::to_string(options.workers),
                                   "--servers",
                                   std::to_string(options.servers),
                                   "--keys",
                                   std::to_string(options.keys),
                                   "--rows",
                                   std::to_string(options.rows),
                                   "--dim",
                                   std::to_string(options.dim),
                                   "--rule",
                                   options.rule,
                                   "--sync",
                                   options.sync,
                                   "--seconds",
                                   fmt::format("{}", options.seconds),
                                   "--start-ns",
                                   std::to_string(options.start_ns)};
  if (options.pull_only) command.emplace_back("--pull-only");
  std::vector<char*> argv;
  for (std::string& part : command) argv.push_back(part.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, self.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno(ErrorKind::kIo, error, "start " + self);
  return Child(pid, output);
}

}  // namespace

Result<PsResult> bench_ps(const PsOptions& asked) {
  const TempDir directory;
  PsOptions options = asked;
  options.directory = directory.path();
  options.start_ns = (SteadyClock().now() + std::chrono::seconds(2)).time_since_epoch().count();
  std::vector<Child> servers;
  for (std::uint32_t s = 0; s < options.servers; ++s) {
    ANTDT_TRY(auto server, spawn(options, "ps-server", s));
    servers.push_back(std::move(server));
  }
  std::vector<Child> workers;
  for (std::uint32_t w = 0; w < options.workers; ++w) {
    ANTDT_TRY(auto worker, spawn(options, "ps-worker", w));
    workers.push_back(std::move(worker));
  }
  PsResult result;
  std::vector<std::uint32_t> latency;
  for (Child& worker : workers) {
    ANTDT_TRY(const std::string text, worker.wait());
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
      {"sync", options.sync},
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
