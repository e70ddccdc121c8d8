#include "sim/job_shape.h"

#include <algorithm>
#include <utility>

#include "sim/hosts/program.h"
#include "sim/model.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Half of the jobs without any bound keep replicas, in one of the three ways, some of which are
// exchanged in the foreground.
void draw_shadow(JobShape& shape, const Options& options) {
  constexpr std::uint64_t kOwn = 0x5ad0;
  Rng rng(options.seed ^ kOwn);
  if (!rng.chance(0.5) && options.sync != Sync::kShadow) return;
  shape.sync = SyncStrategy::kShadowEasgd;
  if (rng.chance(0.4)) shape.shadow_every = rng.between(1, 4);
  const std::uint64_t algorithm = rng.below(3);
  if (algorithm == 1) shape.sync = SyncStrategy::kShadowMa;
  if (algorithm == 2) shape.sync = SyncStrategy::kShadowBmuf;
}

// Drawn from random numbers of its own, so that the other draws are the same for every kind of job.
void draw_servers(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0x5e7e75;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = rng.chance(0.4);
  if (options.sync == Sync::kAllReduce || options.sync == Sync::kDsSync ||
      options.sync == Sync::kGaia || options.sync == Sync::kHybrid ||
      (options.sync == Sync::kAny && !wanted)) {
    return;
  }
  shape.servers = static_cast<std::uint32_t>(rng.between(1, 4));
  constexpr std::uint64_t kOwnReplicas = 0x2e911ca5;
  const bool weaker = options.weaker_delivery;
  if (Rng(options.seed ^ kOwnReplicas).chance(0.4) && !weaker) shape.replicas = 2;
  // A lost server costs more than a lost worker, so some jobs have fewer faults and get far.
  job.calm = static_cast<std::uint32_t>(rng.between(1, 6));
  const bool shadow = options.sync == Sync::kShadow;
  const std::uint64_t drawn = weaker ? rng.between(2, 3) : rng.below(4);
  const std::uint64_t kind = shadow ? 3 : drawn;
  shape.sync = kind < 2    ? SyncStrategy::kPsBsp
               : kind == 2 ? SyncStrategy::kPsSsp
                           : SyncStrategy::kPsAsp;
  if (kind == 3) draw_shadow(shape, options);
  if (kind == 2) shape.staleness = rng.between(1, 4);
  constexpr std::uint64_t kOwnDelivery = 0xde11;
  Rng own(options.seed ^ kOwnDelivery);
  const std::uint64_t promise = weaker ? own.between(1, 2) : own.below(3);
  if (kind >= 2 && shape.replicas < 2) shape.delivery = static_cast<Delivery>(promise);
  if (kind >= 2) return;
  shape.backups = rng.chance(0.3) ? static_cast<std::uint32_t>(rng.between(1, 2)) : 0;
}

// In one of four jobs with a collective, if the kind is free, members mix their replicas in groups.
// Only large jobs have several groups.
void draw_mixing(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0xd55;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = options.sync == Sync::kAny ? rng.chance(0.25) : options.sync == Sync::kDsSync;
  if (shape.servers > 0 || !wanted) return;
  shape.sync = SyncStrategy::kDsSync;
  shape.groups_seed = rng.between(0, 1000);
  const auto workers = static_cast<std::uint32_t>(rng.between(2, 12));
  if (options.workers > 0) return;
  job.workers = workers;
  shape.global_batch += workers;  // each has a part of it
}

// In one of four of the others, embedding rows are on servers.
void draw_served_rows(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0x4b1d;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = options.sync == Sync::kAny ? rng.chance(0.25) : options.sync == Sync::kHybrid;
  if (shape.servers > 0 || shape.sync != SyncStrategy::kAllReduce || !wanted) return;
  shape.sync = SyncStrategy::kHybrid;
  shape.servers = static_cast<std::uint32_t>(rng.between(1, 3));
  job.calm = static_cast<std::uint32_t>(rng.between(1, 6));
}

// In one of four of the others, domains send one another updates. A domain has hosts, so that a job
// whose workers move may come to have one domain only; or it has workers, wherever they run.
void draw_domains(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0x6a1a;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = options.sync == Sync::kAny ? rng.chance(0.25) : options.sync == Sync::kGaia;
  if (shape.servers > 0 || shape.sync != SyncStrategy::kAllReduce || !wanted) return;
  shape.whole_every = static_cast<std::uint32_t>(rng.between(1, 8));
  const std::uint64_t count = rng.between(2, 4);
  const bool of_hosts = rng.chance(0.5);
  for (std::uint64_t i = 0; i < count; ++i)
    shape.domains.push_back({fmt::format("d{}", i), {}, {}});
  constexpr std::uint64_t kMost = 64;  // hosts, and workers
  for (std::uint64_t i = 0; i < kMost; ++i) {
    Domain& domain = shape.domains[i % count];
    of_hosts ? domain.hosts.push_back(fmt::format("h{}", i))
             : domain.workers.push_back(fmt::format("w{}", i));
  }
  const auto workers = static_cast<std::uint32_t>(rng.between(2, 10));
  if (options.workers > 0) return;
  job.workers = workers;
  shape.global_batch += workers;  // each has a part of it
}

// Half of the jobs whose domains send one another updates also change their threshold.
void draw_visits(JobShape& shape, const Options& options) {
  constexpr std::uint64_t kOwn = 0x5c007;
  Rng rng(options.seed ^ kOwn);
  if (shape.whole_every == 0 || !rng.chance(0.5)) return;
  shape.visit_every = static_cast<std::uint32_t>(rng.between(1, 6));
}

// Half of the jobs that sum their gradients share their steps, some in several small groups.
void draw_sharing(JobShape& shape, const Options& options) {
  constexpr std::uint64_t kOwn = 0x54a7e;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = rng.chance(0.5);
  const bool sums = shape.sync == SyncStrategy::kAllReduce && shape.domains.empty();
  if (!sums || options.faults.program_skips || !wanted) return;
  shape.sharing.emplace();
  shape.sharing->group = static_cast<std::uint32_t>(rng.between(2, 8));
}

// In one of four jobs that sum their gradients the program ends the training.
void draw_ending(JobShape& shape, const Options& options) {
  constexpr std::uint64_t kOwn = 0xe4d5;
  Rng rng(options.seed ^ kOwn);
  const bool sums = shape.sync == SyncStrategy::kAllReduce && shape.domains.empty();
  if (!options.faults.program_ends || !sums || !rng.chance(0.25)) return;
  const std::uint64_t steps = shape.epochs * shape.train_records / shape.global_batch;
  shape.ends_at = Step{rng.between(1, steps)};
  shape.ends_alone = rng.chance(0.3);
}

constexpr std::uint32_t kDomains = 2;  // as many as there are hosts, at least
constexpr std::uint32_t kMostHosts = 4;

std::string domain_name(std::uint32_t index) { return fmt::format("d{}", index % kDomains); }
std::string host_name(std::uint32_t index) { return fmt::format("h{}", index); }

// In one of four jobs, if the seed decides, records are pinned to domains: in runs of any length,
// so that a domain may have much more than another.
void draw_pins(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0x9195;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = rng.chance(0.25);
  if (options.pinning == Pinning::kNever) return;
  if (options.pinning == Pinning::kSeedDecides && !wanted) return;
  // Members that exchange updates by domains (draw_domains) do it by these.
  shape.domains.clear();
  for (std::uint32_t i = 0; i < kDomains; ++i) {
    shape.pins.names.push_back(domain_name(i));
    shape.domains.push_back({domain_name(i), {}, {}});
  }
  for (std::uint32_t i = 0; i < kMostHosts; ++i) {
    shape.domains[i % kDomains].hosts.push_back(host_name(i));
  }
  for (std::uint64_t left = shape.grown_records(); left > 0;) {
    const std::uint64_t run = std::min<std::uint64_t>(left, rng.between(1, 120));
    shape.pins.add(run, domain_name(static_cast<std::uint32_t>(rng.below(kDomains))));
    left -= run;
  }
  shape.pins_evaluation = shape.eval_records > 0 && rng.chance(0.5);
  shape.sharing.reset();  // shared steps would take records to other domains
  // When nothing fails any more, every host gets workers, each of which has a part of the batch.
  shape.global_batch += 24;
}

// As antdt run finds them.
PinnedData pinned_data(const shard_server::Pins& pins) {
  PinnedData data;
  data.domains = pins.names;
  for (const shard_server::PinnedRun& run : pins.runs) {
    data.parts.push_back({"train", std::string(pins.name_of(run.domain)), run.records});
  }
  return data;
}

void pin(const JobShape& shape, bool wrong_domains, ctl::JobMachineConfig& config) {
  config.ledger.train.pins = shape.pins.first(config.ledger.train.records);
  if (shape.pins.empty()) return;
  config.pins = pinned_data(config.ledger.train.pins);
  if (shape.pins_evaluation) {
    config.ledger.eval.pins = {};
    config.ledger.eval.pins.names = shape.pins.names;
    config.ledger.eval.pins.add(shape.eval_records / 2, domain_name(1));
    config.ledger.eval.pins.add(shape.eval_records - shape.eval_records / 2, domain_name(0));
  }
  std::vector<Domain> domains = shape.domains;
  if (wrong_domains) std::swap(domains[0].hosts, domains[1].hosts);
  config.domains = Domains(std::move(domains));
  config.spec.pinned_to = config.domains;
}

}  // namespace

std::uint32_t DrawnJob::processes() const {
  const std::uint32_t servers = shape.server_processes();
  return workers + servers + (shape.pins.empty() ? 0 : kMostHosts * (servers + 1));
}

shard_server::DomainNumber JobShape::domain_of(std::string_view host) const {
  for (std::uint32_t i = 0; i < kMostHosts; ++i) {
    if (host == host_name(i)) return pins.number_of(domain_name(i));
  }
  return {};
}

shard_server::DomainNumber JobShape::pinned_to(std::uint64_t record) const {
  const shard_server::Pins until = pins.first(record + 1);
  return until.empty() ? shard_server::DomainNumber{} : until.runs.back().domain;
}

worker::WorkerConfig JobShape::worker_config(Member member, std::uint32_t pid) const {
  worker::WorkerConfig config;
  config.self = member.worker;
  config.join.pid = pid;
  config.join.data = data();
  config.eval_batch = kEvalBatch;
  config.sharing = sharing;
  config.stages_rows = has_served_rows();
  if (sync == SyncStrategy::kDsSync) config.exchange = worker::DsSync{groups_seed};
  if (whole_every > 0) config.exchange = worker::Gaia{whole_every, visit_every, threshold()};
  if (is_shadow(sync)) {
    config.shadow = worker::ps_worker::ShadowRules{shadow_every};
  }
  return config;
}

DrawnJob draw_job(Rng& rng, const Options& options) {
  DrawnJob job;
  JobShape& shape = job.shape;
  shape.train_records = rng.between(100, 300);
  shape.eval_records = options.evaluate && rng.chance(0.5) ? rng.between(20, 80) : 0;
  shape.epochs = options.epochs;
  shape.global_batch = static_cast<std::uint32_t>(rng.between(8, 24));
  shape.sample_time = rng.time(milliseconds(2), milliseconds(40));
  shape.write_time = options.write_time;
  shape.read_time = options.read_time;
  job.workers = static_cast<std::uint32_t>(rng.between(3, 8));
  if (options.workers > 0) job.workers = options.workers;
  draw_servers(job, options);
  draw_mixing(job, options);
  draw_served_rows(job, options);
  draw_domains(job, options);
  draw_visits(shape, options);
  draw_sharing(shape, options);
  draw_pins(job, options);
  draw_ending(shape, options);
  if (options.faults.program_skips) shape.program_skips_one_in = 16;
  return job;
}

ctl::JobMachineConfig machine_config(const JobShape& shape, std::uint64_t seed,
                                     bool wrong_domains) {
  Rng rng(seed);
  ctl::JobMachineConfig config;
  config.job = "sim";
  config.spec.epochs = shape.epochs;
  config.spec.train_records = shape.train_records;
  config.spec.eval_records = shape.eval_records;
  config.spec.checkpoint_every = rng.time(milliseconds(300), seconds(5));
  config.spec.stop_grace = seconds(2);
  config.spec.servers = shape.servers;
  config.spec.server_replicas = shape.replicas;
  config.spec.sync = shape.sync;
  config.spec.staleness = shape.staleness;
  config.spec.delivery = shape.delivery;
  config.spec.backups = shape.backups;
  if (shape.whole_every > 0) config.control.threshold = shape.threshold();
  config.domains = Domains(shape.domains);
  config.ledger.run = kRunDirectory;
  for (const char* cls : {"oom", "program", "signal", "hang", "host", "collective"}) {
    config.spec.budgets[cls] = 1000;
  }
  config.control.rules.global_batch = shape.global_batch;
  config.control.rules.min = 1;
  config.control.monitor.transient_window = seconds(1);
  config.control.monitor.persistent_window = seconds(5);
  config.ledger.train = {shape.train_records, rng.between(5, 40), shard_server::Shuffle::kFull, 7};
  config.ledger.eval = {shape.eval_records, 10, shard_server::Shuffle::kNone, 7};
  config.ledger.retry_limit = 1000000;
  config.secret = crypto::Secret().derive(std::to_string(seed));
  config.hang_after = seconds(10);
  config.data = shape.data();
  pin(shape, wrong_domains, config);
  return config;
}

ctl::JobMachineConfig grown_config(const JobShape& shape, std::uint64_t seed, bool wrong_domains) {
  ctl::JobMachineConfig config = machine_config(shape, seed, wrong_domains);
  config.spec.train_records = shape.grown_records();
  config.spec.began_with = shape.train_records;
  config.ledger.train.records = shape.grown_records();
  config.ledger.train.began_with = shape.train_records;
  pin(shape, wrong_domains, config);
  return config;
}

}  // namespace antdt::sim
