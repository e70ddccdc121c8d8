// How far apart the replicas of members stay by how they are mixed. No job and no model: vectors.
// The goal: DS-Sync keeps 16 replicas within 1e-2 of their mean, and no fixed groups do.
//
//   antdt-consensus-bench [SEEDS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/synchronisation/descent.h"

int main(int argc, char** argv) {
  using namespace antdt;
  using namespace antdt::bench::synchronisation;
  const int seeds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5;
  bool reached = true;
  fmt::print(
      "| members | data | mixing | consensus error: mean (least to most) |\n|---|---|---|---|\n");
  for (const std::uint32_t members : {10U, 16U, 26U, 64U}) {
    for (const double skew : {0.0, 0.75}) {
      for (const Mixing mixing :
           {Mixing::kNone, Mixing::kFixedGroups, Mixing::kRowsAndColumns, Mixing::kDsSync}) {
        double sum = 0;
        double least = 1e300;
        double most = 0;
        for (int seed = 1; seed <= seeds; ++seed) {
          Descent about;
          about.members = members;
          about.skew = skew;
          about.seed = static_cast<std::uint64_t>(seed);
          const double error = descend(about, mixing).consensus_error;
          sum += error;
          least = std::min(least, error);
          most = std::max(most, error);
        }
        fmt::print("| {} | {} | {} | {:.4f} ({:.4f} to {:.4f}) |\n", members,
                   skew > 0 ? "skewed" : "alike", name_of(mixing), sum / seeds, least, most);
        if (members != 16) continue;
        if (mixing == Mixing::kDsSync) reached = reached && most < 1e-2;
        if (mixing == Mixing::kFixedGroups) reached = reached && least > 1e-2;
      }
    }
  }
  return reached ? 0 : 1;
}
