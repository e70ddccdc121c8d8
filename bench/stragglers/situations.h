// The situations in which solutions are compared: which worker is slow, and how. Pure. A situation
// is a job of the model `emulated` with [[inject]] entries, from which the time of the best
// schedule is computed, too (sim/fleet/ideal.h).
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
  std::string what;  // one line for people
  std::uint32_t workers = 8;
  std::uint32_t global_batch = 256;
  std::string sync = "allreduce";
  drill::Emulation emulation;
  std::vector<drill::Rule> rules;
  std::vector<std::string> hosts;  // names of the hosts on which its job runs; empty: this machine
                                   // alone
  std::uint32_t servers = 1;       // if the sync uses parameter servers
  Duration service{};              // a server's own time for a request
  std::string lacks;               // why it cannot be made; empty: it can
};

// All situations in the order of the table. `traces`: the absolute path of the directory with
// job_1_norm.csv and so on; empty: there is none.
[[nodiscard]] std::vector<Situation> situations(const Windows& windows, const std::string& traces);

}  // namespace antdt::stragglers
