// Step times of a ring of all members and of the groups of DS-Sync over links of different speeds,
// in virtual time: what groups can be worth, and what agreeing later would add. No goal.
//
//   antdt-step-times-bench
#include <fmt/format.h>

#include <algorithm>

#include "bench/synchronisation/step_times.h"

int main() {
  using namespace antdt::bench::synchronisation;
  fmt::print(
      "| members | slow | all-reduce | ds-sync | slots of the step before | of 4 before |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const std::uint32_t members : {16U, 64U}) {
    for (const char* slow : {"nothing", "link of two neighbours", "host", "stragglers"}) {
      double all = 0;
      double groups[3] = {};
      constexpr std::uint32_t kLags[] = {0, 1, 4};
      constexpr int kSeeds = 20;
      for (int seed = 1; seed <= kSeeds; ++seed) {
        Fleet fleet;
        fleet.members = members;
        fleet.seed = static_cast<std::uint64_t>(seed);
        if (slow[0] == 'l') fleet.slow.link = {3, 4};
        if (slow[0] == 'h') fleet.slow.host = 3;
        if (slow[0] == 's') fleet.slow.straggles = 0.05;
        all += all_reduce_s(fleet) / kSeeds;
        for (int i = 0; i < 3; ++i) groups[i] += ds_sync_s(fleet, kLags[i]) / kSeeds;
      }
      fmt::print("| {} | {} | {:.0f} ms | {:.0f} ms | {:.0f} ms | {:.0f} ms |\n", members, slow,
                 1e3 * all, 1e3 * groups[0], 1e3 * groups[1], 1e3 * groups[2]);
    }
  }
  return 0;
}
