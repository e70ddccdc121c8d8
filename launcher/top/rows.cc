#include "launcher/top/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/ids.h"
#include "core/report/states.h"
#include "launcher/view/status_view.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher::top {
namespace {

void add_lost(Row& row) {
  if (!row.worker.lost_time) return;
  const report::TimeSpent& t = *row.worker.lost_time;
  const std::array<std::pair<const char*, double>, 7> lost = {
      {{"waiting for others", t.collective_wait},
       {"data", t.data},
       {"records", t.shard_wait},
       {"new groups", t.reconfigure},
       {"checkpoints", t.checkpoint},
       {"starting", t.startup},
       {"other", t.other}}};
  double sum = 0;
  for (const auto& [name, seconds] : lost) sum += seconds;
  if (sum + t.compute <= 0) return;
  row.lost = sum / (sum + t.compute);
  const auto most =
      std::ranges::max_element(lost, {}, [](const auto& part) { return part.second; });
  if (most->second > 0) row.most_lost = most->first;
}

std::string why_of(const report::WorkerStatus& w) {
  if (state_of(w) == ProcessState::kWaiting) {
    return w.tried_again_in_s && *w.tried_again_in_s > 0
               ? fmt::format("started again in {}", clock_text(*w.tried_again_in_s))
               : "waits for a host with room";
  }
  if (w.io) return w.io->text;
  if (w.straggler) {
    std::string why = fmt::format("{} straggler, {:.1f} times as slow: {}", w.straggler->kind,
                                  w.straggler->severity, w.straggler->cause);
    if (!w.straggler->seen.empty()) why += " (" + w.straggler->seen + ")";
    return why;
  }
  return w.verdict == "ok" ? "" : w.verdict;
}

double severity(const Row& row) {
  return row.worker.straggler ? row.worker.straggler->severity : 0;
}

std::uint32_t number_of(const Row& row) {
  const auto id = parse_worker_id(row.worker.id);
  return id ? id->index : 0;
}

}  // namespace

std::vector<Row> rows_of(const std::vector<JobSeen>& jobs, Sort sort) {
  std::vector<Row> rows;
  for (const JobSeen& job : jobs) {
    if (!job.status) continue;
    for (const report::WorkerStatus& w : job.status->workers) {
      if (state_of(w) == ProcessState::kRemoved) continue;
      Row row{.run_dir = job.run_dir, .job = job.job, .worker = w, .why = why_of(w)};
      add_lost(row);
      rows.push_back(std::move(row));
    }
  }
  std::ranges::stable_sort(rows, {}, [](const Row& r) { return std::tuple(r.job, number_of(r)); });
  const auto key = [sort](const Row& r) -> double {
    switch (sort) {
      case Sort::kSlow:
        return severity(r) > 0 ? -1 - severity(r) : is_running(r.worker) ? 0 : -1;
      case Sort::kCpu:
        return -r.worker.cpus.value_or(-1);
      case Sort::kLost:
        return -r.lost.value_or(-1);
      case Sort::kName:
        return 0;
    }
    return 0;
  };
  std::ranges::stable_sort(rows, {}, key);
  return rows;
}

}  // namespace antdt::launcher::top
