#include "bench/antdt/shards.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/antdt/client.h"
#include "bench/antdt/echo.h"
#include "bench/antdt/process.h"
#include "core/os/fs.h"
#include "core/os/runtime_dir.h"
#include "core/wire/operator_messages.h"
#include "launcher/start/job_link.h"
#include "launcher/start/start.h"

namespace antdt::bench {
namespace {

constexpr std::uint64_t kShardRecords = 64;

Result<launcher::JobConfig> make_config(const ShardsOptions& options, std::int64_t start_ns) {
  const std::string text = fmt::format(
      "schema = 1\n"
      "[job]\nname = \"bench-shards\"\n"
      "[roles.worker]\ncount = {}\nrestart = \"never\"\ncommand = [\"true\"]\n"
      "[data]\nformat = \"index\"\nrecords = {}\nshard_batches = 1\n"
      "[batch]\nglobal = {}\nadjust = \"none\"\n"
      "[control]\nsolution = \"none\"\nmode = \"observe\"\n"
      "[trainer]\nmodel = \"lr\"\n"
      "[failure]\nstop_grace = \"2s\"\norphan_timeout = \"10s\"\n"
      "[logs]\nmax = \"64MiB\"\n",
      options.clients, options.shards * kShardRecords, kShardRecords);
  ANTDT_TRY(launcher::JobConfig config,
            launcher::load_text(text, std::filesystem::current_path() / "bench-shards.toml",
                                options.set));
  config.job.id = "bench-shards-" + new_ulid();
  config.data.shard_records = kShardRecords;
  // The job starts no worker: the clients come by themselves.
  if (!options.through_agent) config.roles.worker.count = 0;
  config.roles.worker.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                 "bench",
                                 "shards-client",
                                 "--batch",
                                 std::to_string(options.batch),
                                 "--shard-records",
                                 std::to_string(kShardRecords),
                                 "--start-ns",
                                 std::to_string(start_ns),
                                 "--seconds",
                                 fmt::format("{}", options.seconds)};
  return config;
}

// The clients need some time to join; they begin to count together.
Duration joining_time(const ShardsOptions& options) {
  return std::chrono::seconds(3) + options.clients * std::chrono::milliseconds(40);
}

Result<BenchProcess> start_client(const launcher::JobConfig& config, const std::string& socket,
                                  std::uint32_t index, std::string output) {
  const std::vector<std::string>& command = config.roles.worker.command;
  return BenchProcess::start(
      {command.begin() + 1, command.end()},
      {"ANTDT_SOCKET=" + socket, "ANTDT_JOB_ID=" + config.job.id,
       fmt::format("ANTDT_WORKER_ID=w{}", index), "ANTDT_ATTEMPT=1", "ANTDT_PROTOCOL=antdt"},
      std::move(output));
}

// Resident set of a process, 0 if it is gone.
std::uint64_t rss_bytes(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

// Returns the output of each client, once all have ended.
Result<std::vector<std::string>> printed_by(std::vector<BenchProcess>& clients) {
  std::vector<std::string> texts;
  for (BenchProcess& client : clients) {
    ANTDT_TRY(texts.emplace_back(), client.printed());
  }
  return texts;
}

Result<std::vector<std::string>> worker_logs(const std::string& run, std::uint32_t workers) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < workers; ++i) {
    ANTDT_TRY(texts.emplace_back(), read_file(fmt::format("{}/logs/w{}.1.out", run, i)));
  }
  return texts;
}

Result<ShardsResult> add_up(const std::vector<std::string>& texts, double seconds) {
  ShardsResult result;
  std::uint64_t pairs = 0;
  std::uint64_t shards = 0;
  std::vector<std::uint32_t> latency;
  for (const std::string& text : texts) {
    ANTDT_TRY(const ClientResult client, from_line(text));
    pairs += client.pairs;
    shards += client.shards;
    latency.insert(latency.end(), client.latency_us.begin(), client.latency_us.end());
  }
  if (latency.empty())
    return fail(ErrorKind::kInternal, "no client was answered in the time measured");
  std::ranges::sort(latency);
  result.pairs_per_second = static_cast<double>(pairs) / seconds;
  result.shards_per_second = static_cast<double>(shards) / seconds;
  result.p50_us = latency[latency.size() / 2];
  result.p99_us = latency[latency.size() * 99 / 100];
  return result;
}

}  // namespace

// The rate of the same clients with a server that does nothing.
Result<ShardsResult> bench_echo(const ShardsOptions& options) {
  const TempDir directory;
  const MonoTime start = SteadyClock().now() + joining_time(options);
  ANTDT_TRY(const launcher::JobConfig config,
            make_config(options, start.time_since_epoch().count()));
  transport::Context context;
  ANTDT_TRY(const auto server, EchoServer::start(context, directory / "echo.sock"));
  std::vector<BenchProcess> clients;
  for (std::uint32_t i = 0; i < options.clients; ++i) {
    ANTDT_TRY(auto client, start_client(config, directory / "echo.sock", i,
                                        directory / fmt::format("client{}.out", i)));
    clients.push_back(std::move(client));
  }
  ANTDT_TRY(const auto texts, printed_by(clients));
  return add_up(texts, options.seconds);
}

Result<ShardsResult> bench_shards(const ShardsOptions& options) {
  if (options.echo) return bench_echo(options);
  const std::string root = options.directory.empty()
                               ? std::filesystem::temp_directory_path().string()
                               : options.directory;
  const std::string run = fmt::format("{}/antdt-bench-{}", root, new_ulid());
  // The clients need some time to join; they begin to count together.
  const Duration joining =
      std::chrono::seconds(3) + options.clients * std::chrono::milliseconds(40);
  const MonoTime start = SteadyClock().now() + joining;
  ANTDT_TRY(const launcher::JobConfig config,
            make_config(options, start.time_since_epoch().count()));
  launcher::RunOptions run_options;
  run_options.run_dir = run;
  ANTDT_TRY(auto directory, launcher::create_run_directory(config, "", run_options));
  const nlohmann::json data{
      {"train_records", config.data.records}, {"eval_records", 0}, {"fingerprint", ""}};
  ANTDT_RETURN_IF_ERROR(write_file_atomic(run + "/data.json", data.dump()));

  ANTDT_TRY(const launcher::Programs programs, launcher::find_programs());
  ANTDT_TRY(const std::string sockets, runtime_directory());
  transport::Context context;
  ANTDT_TRY(
      const launcher::RunControl control,
      launcher::start_job(context, {programs, sockets, run, directory.state_dir, config.job.id}));
  std::vector<BenchProcess> clients;  // empty with the agent, which starts the clients as workers
  for (std::uint32_t i = 0; i < options.clients && !options.through_agent; ++i) {
    ANTDT_TRY(auto client, start_client(config, control.jobd_socket, i,
                                        fmt::format("{}/logs/client{}.out", run, i)));
    clients.push_back(std::move(client));
  }
  // The job daemon's statistics are read while it works.
  ANTDT_TRY(auto link, launcher::JobLink::open(context, control.jobd_socket));
  const MonoTime end = start + from_seconds(options.seconds);
  const pid_t jobd = FileLock::owner(run + "/jobd.lock").value_or(0);
  std::uint64_t rss = 0;
  auto texts = printed_by(clients);
  while (SteadyClock().now() < end + std::chrono::seconds(1)) {
    rss = std::max(rss, rss_bytes(jobd));
    usleep(100'000);
  }
  rss = std::max(rss, rss_bytes(jobd));
  if (options.through_agent) texts = worker_logs(run, options.clients);
  auto result = texts.and_then(
      [&](const std::vector<std::string>& all) { return add_up(all, options.seconds); });
  link.send(wire::StopJob{"the bench is over"});
  const MonoTime deadline = SteadyClock().now() + std::chrono::seconds(10);
  while (kill(jobd, 0) == 0 && SteadyClock().now() < deadline) usleep(20'000);
  if (result) {
    result->jobd_rss_bytes = rss;
    std::error_code ignored;
    std::filesystem::remove_all(run, ignored);
  } else {
    result.error().message += fmt::format(" (see {}/jobd.log and {}/logs)", run, run);
  }
  return result;
}

std::string to_json(const ShardsOptions& options, const ShardsResult& r) {
  return nlohmann::json{{"clients", options.clients},
                        {"batch", options.batch},
                        {"seconds", options.seconds},
                        {"through_agent", options.through_agent},
                        {"echo", options.echo},
                        {"shards", options.shards},
                        {"pairs_per_second", r.pairs_per_second},
                        {"shards_per_second", r.shards_per_second},
                        {"p50_us", r.p50_us},
                        {"p99_us", r.p99_us},
                        {"jobd_rss_bytes", r.jobd_rss_bytes}}
      .dump();
}

std::string to_table(const ShardsOptions& options, const ShardsResult& r) {
  return fmt::format(
      "{} clients, {} shard{} a request, {:g} s{}\n"
      "  pairs/s    {:>12.0f}\n"
      "  shards/s   {:>12.0f}\n"
      "  p50        {:>9} us\n"
      "  p99        {:>9} us\n"
      "  job daemon {:>9.1f} MiB for {} shards\n",
      options.clients, options.batch, options.batch == 1 ? "" : "s", options.seconds,
      options.echo            ? ", against an echo that does nothing"
      : options.through_agent ? ", through the agent"
                              : "",
      r.pairs_per_second, r.shards_per_second, r.p50_us, r.p99_us,
      static_cast<double>(r.jobd_rss_bytes) / (1 << 20), options.shards);
}

}  // namespace antdt::bench
