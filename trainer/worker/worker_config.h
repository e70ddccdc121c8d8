// The configuration of the machine of a worker, of either kind.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "trainer/worker/servers/shadow_chain.h"
#include "trainer/worker/sharing/share_rules.h"

namespace antdt::worker {

// How the members of a collective agree on the model (member/exchange.h): by the sum of their
// gradients in each step; or each applies its own gradients, and mixes its parameters with a group
// of others in each step; or those of a domain sum their gradients, and domains send one another
// the significant part of what they have changed.
struct GradientSum {};
struct DsSync {
  std::uint64_t seed = 0;  // of the groups; the same on all members
};
struct Gaia {
  // In every step whose number this divides, domains send one another all that is pending; 1 or
  // more, and the same on all members.
  std::uint32_t whole_every = 50;
  // In every step whose number this divides, a copy of each domain's replica visits another domain;
  // 0: in none.
  std::uint32_t visit_every = 0;
  // How large a part of a parameter's value an update must be to be sent, at the job's full
  // learning rate; a plan may say another one.
  double threshold = 0.01;
};
using ExchangeRules = std::variant<GradientSum, DsSync, Gaia>;

struct WorkerConfig {
  WorkerId self;
  wire::Join join;  // the parts that are the same in every join: pid, data, device, key
  bool has_train_data = true;
  bool has_eval_data = true;
  std::uint32_t eval_batch = 256;  // in records
  // Whether new processes begin with the same state, computed from the job's seed. Otherwise all
  // begin with the state of rank 0.
  bool begins_alike = true;
  // How members of a collective share their steps; empty: each computes its own records.
  std::optional<sharing::ShareRules> sharing = {};
  // Members that do not sum their gradients cannot share steps.
  ExchangeRules exchange = {};
  // Whether embedding rows are on servers: then a member stages its part of each step there before
  // the members agree on the step.
  bool stages_rows = false;
  // How a worker of servers exchanges its replica of the dense parameters with their centre;
  // empty: it keeps no replica.
  std::optional<ps_worker::ShadowRules> shadow = {};
};

}  // namespace antdt::worker
