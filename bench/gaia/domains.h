// Domains that train one model by Gaia, in one process and in virtual time: the arithmetic is real,
// and the network is counted and timed, not used.
//
// Every domain has an engine of its own, the parts of trainer/sync/gaia, and a link to the others.
// The domain that can begin its step first does so next, after it has applied what has arrived by
// then. With links that take no time and nobody ahead, all domains are in lock step.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "bench/gaia/images.h"
#include "core/result.h"
#include "ctl/control/skew_scout.h"

namespace antdt::bench::gaia {

struct Links {
  double bytes_per_s = std::numeric_limits<double>::infinity();  // of a domain's uplink
  double latency_s = 0;
};

struct Setting {
  std::uint32_t domains = 4;
  std::uint32_t batch = 32;    // of a domain
  std::uint32_t steps = 1875;  // of each domain: four epochs
  double rate = 0.1;
  double momentum = 0.9;
  // The learning rate, and with it the threshold, is a tenth from this part of the steps on.
  double decays_at = 0.6;
  std::uint64_t seed = 1;
  Division division = Division::kAlike;

  double threshold = 0.01;                            // at first
  std::optional<ctl::skew::ScoutOptions> scout = {};  // in lock step: what changes the threshold
  std::uint32_t whole_every = 0;  // k: each k-th message is whole; 0: only the last one
  std::uint64_t most_ahead = 0;
  Links links = {};
  double compute_s = 1;  // of a step; not 0
  // The run ends when a replica's accuracy on the test images, looked at every `look_every` steps,
  // reaches this; 0: never.
  double target = 0;
  std::uint32_t look_every = 20;
};

struct Outcome {
  // On the test images: of the sum of everything that was trained; of the domains' replicas before
  // that, their mean and the least.
  double merged = 0;
  double replicas = 0;
  double worst_replica = 0;
  // Relative to sending every element in every step: bytes with those of visiting copies; bytes if
  // messages were as in the paper, a list of indices of four bytes each and values, or dense; how
  // many elements were significant.
  double bytes = 0;
  double paper_bytes = 0;
  double elements = 0;
  double message_bytes = 0;  // mean of all messages
  double dense_bytes = 0;    // of a message in which every element is
  double seconds = 0;        // virtual, until all had done their steps, or one reached the target
  std::optional<std::uint32_t> steps_to_target = {};
  double mean_lag = 0;  // how many steps a message of another domain was old when it was applied
  std::vector<double> thresholds = {};  // in force after each visit, at the full learning rate
  std::vector<float> model = {};        // the merged one's parameters
};

// kUsage if the model cannot be made.
[[nodiscard]] Result<Outcome> train_by_gaia(const Images& images, const Setting& setting);

// The same model, batches and number of steps, with the gradients of all domains summed in each
// step. Of the setting nothing of Gaia counts. `seconds` and bytes are 0.
[[nodiscard]] Result<Outcome> train_by_sums(const Images& images, const Setting& setting);

// Seconds of a sum of so many bytes over the domains' links: around a ring, and sent by each to all
// others at once.
[[nodiscard]] double ring_s(const Links& links, std::uint32_t domains, double bytes);
[[nodiscard]] double direct_s(const Links& links, std::uint32_t domains, double bytes);

}  // namespace antdt::bench::gaia
