// How long the messages of a step take on a link, in seconds: latency for each round of messages
// that wait for one another, and the bytes at the link's bandwidth. Processing them is not
// included; trials measure it.
#pragma once

#include <cstdint>
#include <functional>

#include "launcher/plan/measured.h"

namespace antdt::launcher::plan {

// A sum of `bytes` over `members`, as trainer/collective/tcp makes it: around the ring
// 2 (n - 1) rounds of 1/n of the bytes, or log2 n rounds of all bytes, whichever takes less time
// over a usual network.
[[nodiscard]] double sum_s(const Link& link, std::uint32_t members, double bytes);
// Members gather parts of `bytes` in all: log2 n rounds, (n - 1) / n of the bytes.
[[nodiscard]] double gather_s(const Link& link, std::uint32_t members, double bytes);

struct AllReduceStep {
  double computing_s = 0;  // while the rows of the batch are counted
  bool counts_rows = false;
  bool sends_rows = false;  // otherwise the whole table, if there is one
  double rows_of_all = 0;   // that all members together have in their batches
};
// How long a sum, and gathering, of so many bytes over all members takes.
struct Exchanges {
  std::uint32_t members = 0;
  std::function<double(double bytes)> sum_s;
  std::function<double(double bytes)> gather_s;
};
// All that members say to one another in a step: counts of rows, sums, rows, slots.
[[nodiscard]] double allreduce_s(const Exchanges& exchanges, const ModelSize& model,
                                 const AllReduceStep& step);
[[nodiscard]] double allreduce_s(const Link& link, std::uint32_t members, const ModelSize& model,
                                 const AllReduceStep& step);

// Whether a sum is made by doubling in place of the ring.
[[nodiscard]] bool doubling_is_quicker(std::uint32_t members, double bytes);
// Bytes that `members` gather at the end of a step.
[[nodiscard]] double slots_bytes(std::uint32_t members);

// Whether the members sum a table's rows in place of the whole table
// (trainer/torch/sparse_rows.h).
[[nodiscard]] bool rows_are_quicker(const ModelSize& model, std::uint32_t members,
                                    double rows_of_all);

struct ServedStep {
  std::uint32_t workers = 0;
  std::uint32_t servers = 0;
  double rows = 0;          // of a worker's batch
  bool one_home = false;    // one server decides for all workers
  bool decides = true;      // servers decide about steps, so that workers commit to them
  double remote_bytes = 0;  // through the busiest host's link in a step, in its busier direction
};
struct ServedCost {
  double worker_s = 0;  // for which a worker is held back in a step
  double server_s = 0;  // for which the busiest server is held back in a step
  double rounds_s = 0;  // of the round trips of a step, one after the other
  double bytes_s = 0;   // of the busiest host's bytes
};
[[nodiscard]] ServedCost servers_s(const Link& link, const ModelSize& model,
                                   const ServedStep& step);

// Bytes that a worker with a batch of `rows` rows receives when it pulls, and sends when it pushes.
[[nodiscard]] double pulled_bytes(const ModelSize& model, double rows);
[[nodiscard]] double pushed_bytes(const ModelSize& model, double rows);

// Groups of about the root of `members`, which average all parameters (and with Adam its moments)
// in rings, and slots that all members gather (docs/synchronisation/README.md).
[[nodiscard]] double ds_sync_s(const Link& link, std::uint32_t members, const ModelSize& model);

}  // namespace antdt::launcher::plan
