#include "sim/cluster.h"

#include <utility>

#include "sim/servers/ps_server.h"
#include "sim/servers/ps_worker.h"

namespace antdt::sim {

Cluster::Cluster(World& world, const Options& options)
    : world_(world),
      options_(options),
      job_(draw_job(world.rng(), options)),
      faults_(options.faults),
      checks_(world, options.seed, job_.shape),
      clocks_(world, options.faults.clocks),
      hosts_(world, clocks_, job_.processes(), outside_of_host()),
      other_host_(options.faults.other_data ? fmt::format("h{}", options.seed % hosts_.all().size())
                                            : std::string()),
      network_(world, faults_, hosts_),
      disk_(world.rng(), options.sabotage != Sabotage::kNoFence),
      daemons_(world, clocks_,
               {machine_config(job_.shape, options.seed, wrong_domains()),
                grown_config(job_.shape, options.seed, wrong_domains()), hosts_.names(),
                job_.workers, files_, disk_, options.sabotage, job_.shape.visit_every},
               script, outside_of_daemon()),
      rings_(world, hosts_, network_, script),
      around_{hosts_, network_, rings_, files_, checks_, daemons_, faults_},
      plan_(world, options, job_, {faults_, hosts_, clocks_, network_, files_, disk_, daemons_}) {
  checks_.no_training_on(other_host_);
  files_.records = job_.shape.grown_records();
  files_.unread = options.sabotage == Sabotage::kKeepOldState;
}

void Cluster::begin() {
  for (auto& host : hosts_.all()) host->start_agent();
  daemons_.make();
  plan_.begin();
  world_.after(options_.faults_stop, [this] {
    checks_.faults_are_over();
    plan_.end();
  });
}

Host::Outside Cluster::outside_of_host() {
  return {
      [this](ToDaemon message) {
        const std::string what = world_.tracing() ? sim::describe(message) : "";
        const std::string host = message.host;
        network_.send(
            host + ">", host, [this, message = std::move(message)] { daemons_.receive(message); },
            what);
      },
      [this](Host& at, Member member, std::uint32_t pid) { return make_program(at, member, pid); }};
}

std::shared_ptr<Program> Cluster::make_program(Host& at, Member member, std::uint32_t pid) {
  plan_.placed();
  const Program::Place place{member, pid, at.name(), at.clock()};
  if (member.worker.role == 's') {
    return std::make_shared<PsServer>(world_, around_, options_.sabotage, place);
  }
  JobShape shape = job_.shape;
  const bool lies = options_.sabotage == Sabotage::kLieAboutData;
  if (at.name() == other_host_ && !lies) shape.fingerprint = "other";
  if (!shape.in_collective()) {
    return std::make_shared<PsWorker>(world_, around_, shape, options_.sabotage, place);
  }
  return std::make_shared<Worker>(world_, around_, shape, options_.sabotage, place);
}

Daemon::Outside Cluster::outside_of_daemon() {
  return {
      [this](const std::string& to, ToAgent message) {
        const std::string what = world_.tracing() ? sim::describe(message) : "";
        network_.send(
            ">" + to, to,
            [this, to, message = std::move(message)] { hosts_.at(to).receive(message); }, what);
      },
      [this](const ctl::JobMachine& machine) { checks_.durable(machine, hosts_.living(), files_); },
      [this](const ctl::JobMachine& machine, const ctl::job::Skip& skip, bool durable) {
        checks_.skipped(machine, skip, durable);
      },
      [this](const ctl::Outcome& outcome) { job_ended(outcome); },
      {},
      [this](const ctl::JobMachine& machine, std::uint64_t phase) {
        checks_.said_end(machine, phase);
      },
      [this](const SharedFiles::Checkpoint& checkpoint) {
        checks_.stored(checkpoint);
        if (script.stored) script.stored();
      },
      [this](const ctl::JobMachine& machine, Member member) {
        const auto process = hosts_.worker(member.worker);
        if (process && process->member() == member) checks_.killed(machine, *process);
      },
      [this](const ctl::JobMachine& machine) {
        return script.daemon_dies && script.daemon_dies(machine);
      }};
}

// Another check looks at what is trained until then; a worker that goes on needs the right files.
void Cluster::job_ended(const ctl::Outcome& outcome) {
  const bool refused =
      !other_host_.empty() && outcome.exit_class == ctl::ExitClass::kData && outcome.code == 2;
  if (!refused) checks_.ended(*machine(), files_, outcome);
}

std::string Cluster::describe() const {
  std::string text;
  for (const auto& program : hosts_.programs()) text += "  " + program->doing() + "\n";
  const ctl::JobMachine* machine = this->machine();
  if (machine == nullptr) return text + "  the daemon does not run\n";
  const ctl::JobReport report = machine->report();
  text += fmt::format(
      "  {}: generation {}, base {}, phase {}, {} committed, {} outstanding, waits "
      "for {}\n",
      report.state, machine->generation(), machine->membership().image().base,
      machine->lifecycle().phase().phase, machine->ledger().committed(),
      machine->ledger().outstanding(), report.waiting_for);
  for (const ctl::WorkerReport& w : report.workers) {
    text += fmt::format("  {}.{} is {} on {}\n", w.worker, w.attempt, w.state, w.host);
  }
  return text;
}

}  // namespace antdt::sim
