// antdt evict: a worker, or all workers on a host, give back the records they hold and leave.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/report/states.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"

namespace antdt::cli {

namespace {

using Events = std::vector<launcher::EventView>;

struct EvictOptions {
  std::string job;
  std::string target;
  std::string reason;
  std::string deadline = "30s";
  bool no_wait = false;
  ThroughAgent through;
};

// The name of the host that TARGET means, which may be the end point of its agent.
std::string host_name(const std::string& target, const report::Status& status) {
  const auto host = std::ranges::find_if(
      status.hosts, [&](const report::Host& h) { return h.agent == target || h.name == target; });
  return host == status.hosts.end() ? target : host->name;
}

// The workers that TARGET means, and that have not left yet.
std::vector<report::WorkerStatus> meant(const report::Status& status, const std::string& target) {
  const std::string host = host_name(target, status);
  std::vector<report::WorkerStatus> found;
  for (const report::WorkerStatus& w : status.workers) {
    if (launcher::is_running(w) && (w.id == target || w.host == host)) found.push_back(w);
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

// "has left h1", or what the job daemon did when it had not (ctl/lifecycle/stopping.cc).
template <class Process>
std::string how_it_left(const Process& before, const Events& events) {
  const std::string start = fmt::format("{} (attempt {}) ", before.id, before.attempt);
  const bool killed = std::ranges::any_of(events, [&](const launcher::EventView& e) {
    return e.kind == "killed-late" && e.text.starts_with(start);
  });
  if (!killed) return fmt::format("{} has left {}", before.id, before.host);
  return fmt::format("{} was killed on {}, as it had not left by the --deadline", before.id,
                     before.host);
}

void tell(const report::Status& status, const report::WorkerStatus& before,
          const std::string& left) {
  const report::WorkerStatus* now = find(status, before.id);
  if (now != nullptr && launcher::is_running(*now)) {
    return fmt::print("{} and goes on on {} (attempt {})\n", left, now->host, now->attempt);
  }
  if (now != nullptr && state_of(*now) == ProcessState::kWaiting) {
    return fmt::print("{}; its place is taken when a host has room\n", left);
  }
  fmt::print("{}; its share is spread over the others\n", left);
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
  const std::string left = how_it_left(server, events_of(job).value_or(Events{}));
  if (again) {
    fmt::print("{} and is started again on {} (attempt {})\n", left, again->host, again->attempt);
  } else {
    fmt::print("{}; {} on {} has taken over\n", left, other->id, other->host);
  }
  return {};
}

Status evict(const EvictOptions& options) {
  ANTDT_TRY(const std::uint32_t deadline_ms, milliseconds_of("--deadline", options.deadline));
  ANTDT_TRY(RunningJob job, reach(options.job, options.through));
  ANTDT_TRY(const report::Status before, await_status(job));
  wire::EvictWorkers order;
  order.target = options.target;
  order.reason = options.reason;
  order.who = operator_name();
  order.deadline_ms = deadline_ms;
  ANTDT_RETURN_IF_ERROR(give(job, order));
  if (options.no_wait) {
    fmt::print("{} is asked to leave\n", options.target);
    return {};
  }
  if (const auto* server = find_server(before, options.target)) {
    return await_server(job, before, *server);
  }
  auto leaving = meant(before, options.target);
  if (leaving.empty()) {
    ANTDT_TRY(const report::Status now, await_status(job));
    leaving = meant(now, options.target);  // it came there just before the order
    if (leaving.empty()) {
      fmt::print("{} gets no more workers of this job; none of them runs there\n",
                 host_name(options.target, now));
      return {};
    }
  }
  report::Status after;
  ANTDT_RETURN_IF_ERROR(wait_until(job, [&](const report::Status& status) {
    after = status;
    // With parameter servers the other workers go on in the same generation.
    const bool same_group = before.generation == 0 || !before.servers.empty();
    return std::ranges::all_of(leaving, [&](const auto& w) { return has_left(status, w); }) &&
           (same_group || status.generation > before.generation) && is_settled(status);
  }));
  const Events events = events_of(job).value_or(Events{});
  for (const report::WorkerStatus& w : leaving) tell(after, w, how_it_left(w, events));
  return {};
}

}  // namespace

void add_evict(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<EvictOptions>();
  CLI::App* command =
      app.add_subcommand("evict", "Let a worker, a server, or all workers on a host leave a job");
  command->add_option("RUN", options->job, kJobHelp)->required();
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
  add_agent_options(*command, options->through,
                    help_with_job("evict from the job of another user"));
  command->callback([options, &exit_code] {
    if (const auto done = evict(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
