#include "sim/job_shape.h"

#include "sim/hosts/program.h"
#include "sim/model.h"

namespace antdt::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Half of the jobs without any bound keep replicas, some of which are exchanged in the foreground.
void draw_shadow(JobShape& shape, const Options& options) {
  constexpr std::uint64_t kOwn = 0x5ad0;
  Rng rng(options.seed ^ kOwn);
  if (!rng.chance(0.5) && options.sync != Sync::kShadow) return;
  shape.sync = SyncStrategy::kShadowEasgd;
  if (rng.chance(0.4)) shape.shadow_every = rng.between(1, 4);
}

// Drawn from random numbers of its own, so that the other draws are the same for every kind of job.
void draw_servers(DrawnJob& job, const Options& options) {
  JobShape& shape = job.shape;
  constexpr std::uint64_t kOwn = 0x5e7e75;
  Rng rng(options.seed ^ kOwn);
  const bool wanted = rng.chance(0.4);
  if (options.sync == Sync::kAllReduce || options.sync == Sync::kDsSync ||
      options.sync == Sync::kGaia || (options.sync == Sync::kAny && !wanted)) {
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

}  // namespace

worker::WorkerConfig JobShape::worker_config(Member member, std::uint32_t pid) const {
  worker::WorkerConfig config;
  config.self = member.worker;
  config.join.pid = pid;
  config.join.data = data();
  config.eval_batch = kEvalBatch;
  config.sharing = sharing;
  if (sync == SyncStrategy::kDsSync) config.exchange = worker::DsSync{groups_seed};
  if (whole_every > 0) config.exchange = worker::Gaia{whole_every};
  if (sync == SyncStrategy::kShadowEasgd) {
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
  draw_domains(job, options);
  draw_sharing(shape, options);
  if (options.faults.program_skips) shape.program_skips_one_in = 16;
  return job;
}

ctl::JobMachineConfig machine_config(const JobShape& shape, std::uint64_t seed) {
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
  return config;
}

ctl::JobMachineConfig grown_config(const JobShape& shape, std::uint64_t seed) {
  ctl::JobMachineConfig config = machine_config(shape, seed);
  config.spec.train_records = shape.grown_records();
  config.spec.began_with = shape.train_records;
  config.ledger.train.records = shape.grown_records();
  config.ledger.train.began_with = shape.train_records;
  return config;
}

}  // namespace antdt::sim
