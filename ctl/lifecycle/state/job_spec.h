// The settings that the lifecycle of a job needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/clock.h"
#include "core/delivery.h"
#include "core/domain/domains.h"
#include "core/job_states.h"
#include "core/role_protocol.h"
#include "core/sync_strategy.h"

namespace antdt::ctl {

using antdt::JobState;
using antdt::Protocol;
using antdt::Restart;

// What the lifecycle needs to know of the job.
struct JobSpec {
  Protocol protocol = Protocol::kAntdt;
  Restart restart = Restart::kMember;
  bool external = false;  // no worker is started, because clients come by themselves
  // The bounds of { min, max } workers, in which their number may be changed; 0: none.
  std::uint32_t fewest_workers = 0;
  std::uint32_t most_workers = 0;
  std::uint32_t epochs = 1;
  std::uint64_t train_records = 0;
  std::uint64_t began_with = 0;  // training records when the run began; 0: they have not grown
  std::uint64_t eval_records = 0;
  std::uint64_t rows_put_aside = 0;  // malformed rows of the data, which are no records
  Duration checkpoint_every{};       // 0: only at the end
  Duration stop_grace = std::chrono::seconds(10);
  std::map<std::string, std::uint32_t> budgets;  // by FailureClass
  Duration budget_refill = std::chrono::minutes(10);
  Duration hang_after = std::chrono::minutes(2);  // the longest that a step may take
  // Parameter servers: their number (0: none), and [trainer] sync, backup_workers, staleness.
  std::uint32_t servers = 0;
  SyncStrategy sync = SyncStrategy::kAllReduce;
  std::uint32_t backups = 0;
  std::uint64_t staleness = 0;
  std::uint32_t server_replicas = 1;  // how many processes form one server
  Delivery delivery = Delivery::kExactlyOnce;
  // If records are pinned to domains: these. Workers stay in their domain.
  Domains pinned_to = {};
  [[nodiscard]] std::uint32_t server_processes() const { return servers * server_replicas; }
};

}  // namespace antdt::ctl
