// The job of a simulated run, as its seed draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/delivery.h"
#include "core/domain/domains.h"
#include "core/sync_strategy.h"
#include "core/wire/membership_messages.h"
#include "ctl/job/job_machine.h"
#include "sim/options.h"
#include "sim/rng.h"
#include "trainer/worker/worker_config.h"

namespace antdt::sim {

// What each process knows about the job.
struct JobShape {
  std::uint64_t train_records = 0;
  std::uint64_t eval_records = 0;
  std::uint32_t epochs = 0;
  std::uint32_t global_batch = 0;
  Duration sample_time{};  // to compute one sample
  Duration write_time{};   // of a checkpoint
  Duration read_time{};
  std::uint32_t servers = 0;  // 0: none
  SyncStrategy sync = SyncStrategy::kAllReduce;
  std::uint64_t groups_seed = 0;  // of members that mix their replicas
  // Of members whose domains send one another updates: everything in each step that this divides.
  // 0: of no such job.
  std::uint32_t whole_every = 0;
  std::uint32_t visit_every = 0;  // of such members, under the solution skew-scout; 0: another one
  std::vector<Domain> domains = {};  // of such a job, or of one whose records are pinned
  std::uint64_t staleness = 0;
  std::uint64_t shadow_every = 0;  // with shadow-…
  std::uint32_t backups = 0;
  std::uint32_t replicas = 1;  // processes of each server
  Delivery delivery = Delivery::kExactlyOnce;
  std::optional<worker::sharing::ShareRules> sharing = {};  // members share their steps
  std::uint32_t program_skips_one_in = 0;                   // of the records; 0: of none
  // The program ends the training when this many steps are in the model; 0: it does not. By itself
  // each member does that, or only w0.
  Step ends_at = {};
  bool ends_alone = false;
  // Of grown_records() records; empty: they are not pinned. Hosts are in domains in turns.
  shard_server::Pins pins = {};
  bool pins_evaluation = false;
  std::string fingerprint = "f";  // of the data that a worker finds on its host
  [[nodiscard]] wire::DataIdentity data() const {
    return {train_records, eval_records, fingerprint, "the data " + fingerprint};
  }
  [[nodiscard]] worker::WorkerConfig worker_config(Member member, std::uint32_t pid) const;
  // How many training records there are once an operator's stop was followed by a resume.
  [[nodiscard]] std::uint64_t grown_records() const { return train_records + train_records / 4; }
  // In which domain a host is.
  [[nodiscard]] shard_server::DomainNumber domain_of(std::string_view host) const;
  // To which domain a training record is pinned; 0: none.
  [[nodiscard]] shard_server::DomainNumber pinned_to(std::uint64_t record) const;
  // Of such members: the one of the job's file.
  [[nodiscard]] double threshold() const { return 0.01; }
  // Whether the workers are members of a collective whose embedding rows are on servers.
  [[nodiscard]] bool has_served_rows() const { return sync == SyncStrategy::kHybrid; }
  [[nodiscard]] bool in_collective() const { return antdt::in_collective(sync); }
  [[nodiscard]] std::uint32_t server_processes() const { return servers * replicas; }
};

struct DrawnJob {
  JobShape shape;
  std::uint32_t workers = 0;
  std::uint32_t calm = 1;  // faults are this many times further apart
  // For how many processes the hosts have room. If records are pinned, all servers may be on the
  // hosts of one domain, and its workers must still find a place there.
  [[nodiscard]] std::uint32_t processes() const;
};
[[nodiscard]] DrawnJob draw_job(Rng& rng, const Options& options);

// The configuration of its job machine, without the incarnation. `wrong_domains`: for a sabotage,
// each host is in the domain of another one.
[[nodiscard]] ctl::JobMachineConfig machine_config(const JobShape& shape, std::uint64_t seed,
                                                   bool wrong_domains = false);
// The same once records were added.
[[nodiscard]] ctl::JobMachineConfig grown_config(const JobShape& shape, std::uint64_t seed,
                                                 bool wrong_domains = false);

}  // namespace antdt::sim
