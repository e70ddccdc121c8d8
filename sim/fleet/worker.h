// A worker of a simulated fleet: which records it has in hand, its share of a
// step, and what it has measured since its last report. It computes nothing: how
// long it takes is a number.
//
// The records in hand are the real ones (trainer/client/shard_feed.h); what a
// worker's process does besides, and every lost or late packet, is for sim/.
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
  Generation settled;     // whose training state it holds
  bool in_group = false;  // or in one that forms
  std::uint32_t rank = 0;
  std::uint64_t phase = 0;
  PartOfStep share;
  PartOfStep held;  // newest plan, from the end of a step on
  std::uint64_t place = 0;
  std::uint64_t stable_place = 0;
  std::optional<std::uint32_t> leaves;  // with this code, at the end of a step
  client::ShardFeed feed;

  // Of the step.
  std::uint64_t records = 0;
  double own_s = 0;
  bool short_of_data = false;
  bool waits_for_data = false;  // more may come
  std::uint64_t batches = 0;    // micro-batches so far

  // How much it keeps in hand, as trainer/loop/hold.h.
  MonoTime hold_set{};
  std::uint64_t hold_place = 0;

  // Measured since the last report.
  MonoTime progress_sent{};
  wire::Report sum;
  MonoTime sum_since{};
  std::uint64_t samples_total = 0;
  wire::TimeAccount account;

  void take_up(const wire::Plan& plan);  // what it is to hold
  void begin_phase(std::uint64_t number, MonoTime now);
  // Takes what its share wants and is in hand.
  void take();
  void measured(double wait_s, bool counts, MonoTime now);
  // After a step, or under another plan.
  void set_hold(MonoTime now, bool at_once);
  [[nodiscard]] wire::Metrics metrics(Step step, const char* activity, MonoTime now);
};

}  // namespace antdt::fleet
