// A worker of a simulated fleet: the records that it holds, its share of a step, and what it has
// measured since its last report. It computes nothing: its speed is a number.
//
// It holds its records in the code that ships (trainer/client/shard_feed.h). The rest of a worker's
// process, and lost or late packets, are simulated in sim/members and sim/servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/agent_messages.h"
#include "core/wire/membership_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/shard_feed.h"

namespace antdt::fleet {

struct PartOfStep {
  PlanVersion version;
  std::uint32_t micro_batch = 0;
  std::uint32_t accumulation = 0;
  [[nodiscard]] std::uint64_t samples() const { return std::uint64_t{micro_batch} * accumulation; }
};

struct Worker {
  Member member;
  std::string host;
  bool alive = false;
  MonoTime started{};
  std::optional<MonoTime> first_step{};

  // Of its group.
  Generation generation;  // the newest that it was told of
  Generation settled;     // the generation whose training state it holds
  bool in_group = false;  // in a group, or in one that forms
  std::uint32_t rank = 0;
  std::uint64_t phase = 0;
  PartOfStep share;
  PartOfStep held;  // the newest plan; changes at the end of a step
  std::uint64_t place = 0;
  std::uint64_t stable_place = 0;
  std::optional<std::uint32_t> leaves;  // it leaves with this exit code at the end of the step
  client::ShardFeed feed;

  // Of the step.
  std::uint64_t records = 0;   // of its own part
  std::uint64_t computed = 0;  // by it: others, if the members share their steps
  double own_s = 0;
  bool short_of_data = false;
  bool waits_for_data = false;  // more records may come
  std::uint64_t batches = 0;    // micro-batches so far

  // How many records it holds in advance, as in trainer/worker/hold.h.
  MonoTime hold_set{};
  std::uint64_t hold_place = 0;

  // Measured since the last report.
  MonoTime progress_sent{};
  wire::Report sum;
  MonoTime sum_since{};
  std::uint64_t samples_total = 0;
  wire::TimeAccount account;

  void take_up(const wire::Plan& plan);  // takes up its entry of the plan
  void begin_phase(std::uint64_t number, MonoTime now);
  // Takes the records of its share, as far as it holds them.
  void take();
  void measured(double wait_s, bool counts, MonoTime now);
  // Called after a step, or when the plan changes.
  void set_hold(MonoTime now, bool at_once);
  [[nodiscard]] wire::Metrics metrics(Step step, const char* activity, MonoTime now);
  [[nodiscard]] bool is_server() const { return member.worker.role == 's'; }
  // Another one than that of any other process.
  [[nodiscard]] std::uint32_t pid() const {
    constexpr std::uint32_t kServers = 1'000'000;
    return (is_server() ? kServers : 0) + member.worker.index + 1;
  }
};

}  // namespace antdt::fleet
