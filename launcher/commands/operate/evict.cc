// antdt evict: a worker, or all workers on a host, give back the records they hold and leave.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/report/states.h"
#include "core/schema/units.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"

namespace antdt::cli {

namespace {

struct EvictOptions {
  std::string job;
  std::string target;
  std::string reason;
  std::string deadline = "30s";
  bool no_wait = false;
  ThroughAgent through;
};

// The status of the workers to evict, before the eviction.
std::vector<report::WorkerStatus> meant(const report::Status& status, const std::string& target) {
  std::vector<report::WorkerStatus> found;
  for (const report::WorkerStatus& w : status.workers) {
    if (launcher::is_running(w) && (w.id == target || w.host == target)) found.push_back(w);
  }
  return found;
}

const report::WorkerStatus* find(const report::Status& status, const std::string& id) {
  const auto found = std::ranges::find(status.workers, id, &report::WorkerStatus::id);
  return found == status.workers.end() ? nullptr : &*found;
}

bool has_left(const report::Status& status, const report::WorkerStatus& before) {
  const report::WorkerStatus* now = find(status, before.id);
  return now == nullptr || now->attempt != before.attempt || !launcher::is_running(*now);
}

void tell(const report::Status& status, const report::WorkerStatus& before) {
  const report::WorkerStatus* now = find(status, before.id);
  if (now != nullptr && launcher::is_running(*now)) {
    return fmt::print("{} has left {} and goes on on {} (attempt {})\n", before.id, before.host,
                      now->host, now->attempt);
  }
  if (now != nullptr && state_of(*now) == ProcessState::kWaiting) {
    return fmt::print("{} has left {}; its place is taken when a host has room\n", before.id,
                      before.host);
  }
  fmt::print("{} has left {}; its share is spread over the others\n", before.id, before.host);
}

const report::ServerStatus* find_server(const report::Status& status, const std::string& id) {
  const auto found = std::ranges::find(status.servers, id, &report::ServerStatus::id);
  return found == status.servers.end() ? nullptr : &*found;
}

// With a replica, the process is started again and receives its server's state while the others go
// on. Without one, another process takes over, and then this one leaves.
Status await_server(RunningJob& job, const report::Status& before,
                    const report::ServerStatus& server) {
  std::optional<report::ServerStatus> again;
  std::optional<report::ServerStatus> other;
  bool failed = false;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& status) {
    const report::ServerStatus* const found = find_server(status, server.id);
    const bool came = other.has_value();
    other.reset();
    for (const report::ServerStatus& s : status.servers) {
      if (find_server(before, s.id) == nullptr) other = s;
    }
    failed = came && !other && found != nullptr && found->attempt == server.attempt;
    if (found != nullptr && found->attempt > server.attempt) again = *found;
    if (failed) return true;
    return found == nullptr ? other.has_value()
                            : again && state_of(*again) == ProcessState::kJoined;
  }));
  if (failed) {
    return fail(ErrorKind::kRefused,
                "{} goes on on {}: the process that was to take over was lost, and antdt explain "
                "{} says how; evict it again to try once more",
                server.id, server.host, job.run_dir);
  }
  if (again) {
    fmt::print("{} has left {} and is started again on {} (attempt {})\n", server.id, server.host,
               again->host, again->attempt);
  } else {
    fmt::print("{} has left {}; {} on {} has taken over\n", server.id, server.host, other->id,
               other->host);
  }
  return {};
}

Status evict(const EvictOptions& options) {
  ANTDT_TRY(const auto deadline, schema::parse_duration(options.deadline));
  ANTDT_TRY(RunningJob job, reach(options.job, options.through));
  ANTDT_TRY(const report::Status before, await_status(job));
  wire::EvictWorkers order;
  order.target = options.target;
  order.reason = options.reason;
  order.who = operator_name();
  order.deadline_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count());
  ANTDT_RETURN_IF_ERROR(give(job, order));
  const auto leaving = meant(before, options.target);
  if (options.no_wait) {
    fmt::print("{} is asked to leave\n", options.target);
    return {};
  }
  if (const auto* server = find_server(before, options.target)) {
    return await_server(job, before, *server);
  }
  report::Status after;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& status) {
    after = status;
    // With parameter servers the other workers go on in the same generation.
    const bool same_group = before.generation == 0 || !before.servers.empty();
    return std::ranges::all_of(leaving, [&](const auto& w) { return has_left(status, w); }) &&
           (same_group || status.generation > before.generation) && is_settled(status);
  }));
  for (const report::WorkerStatus& w : leaving) tell(after, w);
  return {};
}

}  // namespace

void add_evict(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<EvictOptions>();
  CLI::App* command =
      app.add_subcommand("evict", "Let a worker, a server, or all workers on a host leave a job");
  command->add_option("JOB", options->job, kJobHelp)->required();
  command
      ->add_option("TARGET", options->target,
                   "a worker such as w3, a parameter server such as s0, or a host")
      ->required();
  command->add_option("--reason", options->reason, "why, for the record");
  command
      ->add_option("--deadline", options->deadline,
                   "how long it may take to finish its step; then it is killed")
      ->type_name("TIME")
      ->capture_default_str();
  command->add_flag("--no-wait", options->no_wait, "return when the job daemon has heard it");
  add_agent_options(*command, options->through);
  command->callback([options, &exit_code] {
    if (const auto done = evict(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
