// A worker that trains nothing, but goes through plan, fetch and commit as a
// trainer does. docs/worker-client.md explains it; job.toml beside it runs it.
#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "trainer/client/client.h"

using namespace antdt;

// Batches of the size that the newest plan gives this worker, each committed
// once it is done, until every record of the phase is.
Status work_through(client::Client& client, const wire::PhaseStart& phase) {
  client.begin_phase(phase.phase);
  client.set_hold(2000);  // fetched ahead by the client's own thread
  std::uint64_t place = 0;
  while (!client.leave_requested() && !client.regroup_requested()) {
    const auto plan = client.plan(client.held_plan());
    std::uint32_t batch = 32;
    for (const auto& entry : plan ? plan->entries : std::vector<wire::PlanEntry>()) {
      if (entry.worker == client.member().worker) batch = std::max(entry.micro_batch, 1U);
    }
    ANTDT_TRY(const auto taken, client.take(batch, std::chrono::seconds(1)));
    if (taken.stale) return {};  // an order follows
    if (taken.status == client::TakeStatus::kEnd) break;
    if (taken.records == 0) continue;
    const std::chrono::microseconds compute(10 * taken.records);
    std::this_thread::sleep_for(compute);  // taken.pieces say which records to train on
    place += taken.records;
    client.commit(place);
    client.report({taken.records, Duration(0), compute, Duration(0), true});
  }
  // Told to stop together, it has not done all.
  if (client.regroup_requested()) return {};
  client.progress({phase.phase, Step{}, place, phase.records, 0, 0, {}, true});
  return {};
}

Result<int> run() {
  ANTDT_TRY(const auto environment, client::Environment::from_process());
  ANTDT_TRY(const auto client, client::Client::connect(environment));
  wire::Join join;
  join.pid = static_cast<std::uint32_t>(::getpid());
  client->join(join);
  client->set_activity("compute");  // whatever this process does counts as work
  std::optional<std::uint32_t> exit_code;
  while (!exit_code) {
    ANTDT_TRY(const auto directive, client->next_directive(std::chrono::seconds(1)));
    if (!directive) continue;
    if (std::holds_alternative<wire::Form>(directive->order)) {
      client->send_address({"nowhere"});  // a trainer would listen here
    } else if (std::holds_alternative<wire::Roster>(directive->order)) {
      client->send_ready({});  // and connect to its neighbours here, and take over their state
    } else if (std::holds_alternative<wire::Settle>(directive->order)) {
      join.settled = directive->generation;  // whose state this process holds
    } else if (std::holds_alternative<wire::Abort>(directive->order) ||
               std::holds_alternative<wire::Regroup>(directive->order)) {
      client->join(join);  // the membership changes; this process goes on
    } else if (const auto* leave = std::get_if<wire::Leave>(&directive->order)) {
      exit_code = leave->code;
    } else if (const auto* phase = std::get_if<wire::PhaseStart>(&directive->order)) {
      if (phase->what == wire::PhaseKind::kFinish) exit_code = 0;
      if (phase->what == wire::PhaseKind::kTrain)
        ANTDT_RETURN_IF_ERROR(work_through(*client, *phase));
    }
  }
  client->bye({});
  return static_cast<int>(*exit_code);
}

int main() {
  const auto code = run();
  if (!code) fmt::print(stderr, "antdt-example-client: {}\n", code.error().message);
  return code.value_or(1);
}
