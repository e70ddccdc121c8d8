// The situations that solutions are compared in: what is wrong with which worker.
// Pure. A situation is a job of the model `emulated` and [[inject]] entries; the same
// values say how long the best schedule would take (sim/fleet/ideal.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/drill/emulation.h"
#include "core/drill/injection.h"

namespace antdt::stragglers {

struct Windows {
  Duration transient{};
  Duration persistent{};
};

struct Situation {
  std::string name;
  std::string what;  // for people, one line
  std::uint32_t workers = 8;
  std::uint32_t global_batch = 256;
  std::string sync = "allreduce";
  drill::Emulation emulation;
  std::vector<drill::Rule> rules;
  std::vector<std::string> hosts;  // names of those that its job runs on; none: this machine alone
  std::uint32_t servers = 1;       // where the sync is one of parameter servers
  Duration service{};              // what one of them takes for a request by itself
  std::string lacks;               // why it cannot be made; empty: it can
};

// All of them, in the order of the table. `traces`: the directory with job_1_norm.csv and
// so on, absolute; empty: there is none.
[[nodiscard]] std::vector<Situation> situations(const Windows& windows, const std::string& traces);

}  // namespace antdt::stragglers
