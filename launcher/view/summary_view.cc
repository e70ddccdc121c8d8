#include "launcher/view/summary_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>

#include "core/os/fs.h"
#include "core/report/json.h"
#include "core/report/states.h"
#include "launcher/view/status_view.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher {

namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kShown = 20;  // how many of the last actions and failures are shown

std::string rounded(double value) {
  return grouped(static_cast<std::uint64_t>(std::max(0.0, value) + 0.5));
}

std::string metric(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.4f}", *value) : "-";
}

// How fast a script was on average says nothing if it hung at the end. A program that no samples
// are known of has no such speed at all.
void add_speed(const report::Summary& s, Lines& lines) {
  if (s.hang && !s.hang->over) {
    lines.push_back(fmt::format("{}: {} in {}, {} steps until it hung", s.job, s.state,
                                clock_text(s.wall_seconds), grouped(s.steps)));
    return;
  }
  if (s.traced && !s.traced->samples_known) {
    lines.push_back(fmt::format("{}: {} in {}, {} steps, {:.3g} steps/s (samples unknown)", s.job,
                                s.state, clock_text(s.wall_seconds), grouped(s.steps),
                                s.traced->steps_per_second));
    return;
  }
  std::string line = fmt::format("{}: {} in {}", s.job, s.state, clock_text(s.wall_seconds));
  if (s.samples_per_second > 0 || (s.samples_total > 0 && s.samples_trained == 0)) {
    line += fmt::format(", {} samples/s", rounded(s.samples_per_second));
  } else if (s.samples_trained > 0) {
    line += ", speed not known";
  }
  lines.push_back(std::move(line));
}

void add_epochs(const report::Summary& s, Lines& lines) {
  if (const auto& end = s.training_ended) {
    lines.push_back(fmt::format("the program ended the training in epoch {}: {}",
                                std::max<std::uint64_t>(end->epochs, 1), end->reason));
  }
  std::set<std::string> names;  // of the program's own sums
  for (const report::EpochSummary& epoch : s.epochs) {
    if (epoch.eval)
      std::ranges::copy(std::views::keys(epoch.eval->sums), std::inserter(names, names.end()));
  }
  std::vector<std::string> header{"epoch#", "train loss#", "eval AUC#", "log loss#", "accuracy#"};
  for (const std::string& name : names) header.push_back(name + "#");
  std::vector<std::vector<std::string>> rows;
  for (const report::EpochSummary& epoch : s.epochs) {
    const report::Evaluation eval = epoch.eval.value_or(report::Evaluation{});
    rows.push_back({std::to_string(rows.size() + 1), metric(epoch.train_loss), metric(eval.auc),
                    metric(eval.log_loss), metric(eval.accuracy)});
    for (const std::string& name : names) {
      const auto sum = eval.sums.find(name);
      rows.back().push_back(
          sum == eval.sums.end()
              ? metric({})
              : fmt::format("{:.4g}", sum->second / static_cast<double>(eval.records)));
    }
  }
  if (rows.empty()) return;
  std::ranges::move(text_table(header, rows), std::back_inserter(lines));
}

void add_time(const report::Summary& s, Lines& lines) {
  const report::TimeSpent& t = s.lost_time;
  const std::pair<const char*, double> parts[] = {{"compute", t.compute},
                                                  {"data", t.data},
                                                  {"collective wait", t.collective_wait},
                                                  {"shard wait", t.shard_wait},
                                                  {"reconfigure", t.reconfigure},
                                                  {"checkpoint", t.checkpoint},
                                                  {"startup", t.startup},
                                                  {"other", t.other}};
  double total = 0;
  for (const auto& [name, seconds] : parts) total += seconds;
  if (total <= 0) return;
  std::string text;
  for (const auto& [name, seconds] : parts) {
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", name, 100 * seconds / total);
  }
  lines.push_back("time of all workers: " + text);
}

// A worker's own speed counts getting data and computing, so a worker that waits is not slow.
void add_workers(const report::Summary& s, Lines& lines) {
  std::vector<std::vector<std::string>> rows;
  for (const report::WorkerSummary& w : s.workers) {
    const double own = w.lost_time.compute + w.lost_time.data;
    if (w.samples == 0 || own <= 0) continue;
    rows.push_back({w.id, w.host, grouped(w.samples), rounded(static_cast<double>(w.samples) / own),
                    clock_text(own), clock_text(w.lost_time.collective_wait)});
  }
  if (rows.empty()) return;
  std::ranges::move(
      text_table({"worker", "host", "samples#", "own samples/s#", "own time#", "waited#"}, rows),
      std::back_inserter(lines));
}

// What a worker did after its last report is not known: it died, or ended while no job daemon ran.
void add_unreported(const report::Summary& s, Lines& lines) {
  std::uint64_t reported = 0;
  for (const report::WorkerSummary& w : s.workers) reported += w.samples;
  if (reported == 0 || reported >= s.samples_trained) return;
  lines.push_back(
      fmt::format("{} more samples were trained by workers that ended before they reported them",
                  grouped(s.samples_trained - reported)));
}

void add_shared_steps(const report::Summary& s, Lines& lines) {
  std::uint64_t all = 0, of_others = 0;
  for (const report::WorkerSummary& w : s.workers) {
    all += w.samples;
    of_others += w.samples_of_others;
  }
  if (of_others == 0) return;
  lines.push_back(fmt::format("shared steps: {} samples ({:.1f}%) were computed for other workers",
                              grouped(of_others),
                              100 * static_cast<double>(of_others) / static_cast<double>(all)));
}

void add_servers(const report::Summary& s, Lines& lines) {
  if (s.servers.empty()) return;
  std::ranges::move(server_table(s.servers), std::back_inserter(lines));
  if (!s.pushes) return;
  const report::Pushes& pushes = *s.pushes;
  const report::Staleness staleness = s.staleness.value_or(report::Staleness{});
  lines.push_back(
      fmt::format("pushes: {} applied, {} late, {} repeated; staleness {:.1f} (most {})",
                  grouped(pushes.applied), grouped(pushes.late), grouped(pushes.repeated),
                  staleness.mean, grouped(staleness.max)));
}

// Of all workers; the gap is the mean over their exchanges.
void add_exchanges(const report::Summary& s, Lines& lines) {
  std::uint64_t count = 0;
  double steps = 0, ms = 0, waited = 0, wall = 0;
  for (const report::WorkerSummary& w : s.workers) {
    wall += w.wall_seconds;
    if (!w.exchanges) continue;
    const auto own = static_cast<double>(w.exchanges->count);
    count += w.exchanges->count;
    steps += own * w.exchanges->mean_gap_steps;
    ms += own * w.exchanges->mean_gap_ms;
    waited += w.exchanges->waited_seconds;
  }
  if (count == 0) return;
  const auto all = static_cast<double>(count);
  lines.push_back(fmt::format(
      "exchanges: {}, one in {:.1f} steps or {:.0f} ms of a worker; training waited "
      "{:.1f}s for them ({:.2f}%)",
      grouped(count), steps / all, ms / all, waited, wall > 0 ? 100 * waited / wall : 0));
}

// Members of a domain count the same messages, so of each share only the mean over workers is told.
void add_updates(const report::Summary& s, Lines& lines) {
  std::uint64_t messages = 0, whole = 0;
  double share = 0, workers = 0;
  for (const report::WorkerSummary& w : s.workers) {
    if (!w.updates) continue;
    messages = std::max(messages, w.updates->messages);
    whole = std::max(whole, w.updates->whole);
    share += w.updates->sent_share;
    ++workers;
  }
  if (messages == 0) return;
  lines.push_back(fmt::format(
      "updates between domains: {} messages of each domain, {} of them whole; {:.1f}% of the "
      "elements were sent",
      grouped(messages), grouped(whole), 100 * share / workers));
  if (auto line = threshold_line(s.update_threshold); !line.empty()) {
    lines.push_back(std::move(line));
  }
}

// Each member counts the steps in which it took part, so the member of most steps speaks for all.
void add_collective(const report::Summary& s, Lines& lines) {
  if (!s.collective.empty()) lines.push_back("collective: " + s.collective);
  if (auto line = link_line(s.traffic); !line.empty()) lines.push_back(std::move(line));
  const auto steps = [](const report::WorkerSummary& w) {
    return w.embedding_steps ? w.embedding_steps->rows + w.embedding_steps->whole_table : 0;
  };
  const auto most = std::ranges::max_element(s.workers, {}, steps);
  if (most == s.workers.end() || steps(*most) == 0) return;
  lines.push_back(fmt::format(
      "embedding gradients: {} summed the rows of the batch in {} steps, the whole table in {}",
      most->id, grouped(most->embedding_steps->rows), grouped(most->embedding_steps->whole_table)));
}

// "failures: 2,500, the last 20 (summary.json has the newest 2,000):"; what ended a run comes last.
template <class T>
std::string last_of(const char* what, const std::vector<T>& newest, std::uint64_t count) {
  const std::uint64_t all = in_all(newest, count);
  if (newest.size() <= kShown && all == newest.size()) {
    return fmt::format("{}: {}", what, newest.empty() ? "none" : grouped(all));
  }
  const std::string kept =
      all == newest.size() ? "all" : fmt::format("the newest {}", grouped(newest.size()));
  return fmt::format("{}: {}, the last {} (summary.json has {}):", what, grouped(all),
                     std::min(newest.size(), kShown), kept);
}

template <class T>
std::size_t first_shown(const std::vector<T>& newest) {
  return newest.size() - std::min(newest.size(), kShown);
}

void add_actions(const report::Summary& s, Lines& lines) {
  lines.push_back(last_of("actions", s.actions, s.actions_count));
  for (std::size_t i = first_shown(s.actions); i < s.actions.size(); ++i) {
    const report::Action& action = s.actions[i];
    const bool done = action.outcome.empty() || outcome_of(action) == ActionOutcome::kApplied;
    lines.push_back(fmt::format("  {:>8}  {}{}{}{}: {}", fmt::format("{:.1f}s", action.time_s),
                                action.kind, action.target.empty() ? "" : " ", action.target,
                                done ? "" : fmt::format(" ({})", action.outcome), action.reason));
  }
}

void add_failures(const report::Summary& s, Lines& lines) {
  if (s.failures.empty()) return;
  lines.push_back(last_of("failures", s.failures, s.failures_count));
  for (std::size_t i = first_shown(s.failures); i < s.failures.size(); ++i) {
    lines.push_back(failure_line(s.failures[i]));
  }
}

// A program that reads its data itself has no accounts.
void add_accounts(const report::Summary& s, Lines& lines) {
  if (s.samples_total == 0) return;
  lines.push_back(fmt::format(
      "samples: {} of {} trained, {} repeated, {} lost, {} skipped, {} unaccounted",
      grouped(s.samples_trained), grouped(s.samples_total), grouped(s.samples_repeated),
      grouped(s.samples_lost), grouped(s.samples_skipped), grouped(s.samples_unaccounted)));
  if (!s.skipped_by_program.empty()) lines.push_back("  " + skipped_line(s.skipped_by_program));
  if (s.rows_put_aside > 0) {
    lines.push_back(s.rows_put_aside == 1
                        ? "  1 malformed row of the data was put aside, and is no record"
                        : fmt::format("  {} malformed rows of the data were put aside, and are no "
                                      "records",
                                      grouped(s.rows_put_aside)));
  }
}

}  // namespace

Result<report::Summary> parse_summary(const std::string& text) {
  auto summary = report::from_json<report::Summary>(text);
  if (!summary) {
    return fail(ErrorKind::kCorrupt, "the summary cannot be read: {}", summary.error().message);
  }
  return summary;
}

Result<report::Summary> read_summary(const std::string& run_dir) {
  const std::string path = run_dir + "/summary.json";
  ANTDT_TRY(const std::string text, read_file(path));
  auto summary = parse_summary(text);
  if (!summary) return fail(ErrorKind::kCorrupt, "{}: {}", path, summary.error().message);
  return summary;
}

std::vector<report::WorkerStatus> workers_of(const report::Summary& summary) {
  std::vector<report::WorkerStatus> workers;
  for (const report::WorkerSummary& w : summary.workers) {
    report::WorkerStatus& worker = workers.emplace_back();
    worker.id = w.id;
    worker.rank = w.rank;
    worker.host = w.host;
    worker.pid = w.pid;
    worker.attempt = w.attempt;
    worker.samples = w.samples;
  }
  return workers;
}

Lines summary_lines(const report::Summary& summary) {
  Lines lines;
  add_speed(summary, lines);
  add_epochs(summary, lines);
  add_workers(summary, lines);
  add_unreported(summary, lines);
  add_shared_steps(summary, lines);
  add_servers(summary, lines);
  add_exchanges(summary, lines);
  add_updates(summary, lines);
  add_collective(summary, lines);
  add_time(summary, lines);
  add_actions(summary, lines);
  add_failures(summary, lines);
  add_accounts(summary, lines);
  return lines;
}

Lines closing_lines(const report::Summary& summary, const std::string& run_dir) {
  Lines lines;
  if (summary.exit.code == 0) return lines;
  lines.push_back(
      fmt::format("the run is in {}, its workers' output in {}/logs", run_dir, run_dir));
  if (summary.exit.code == 75) {
    lines.push_back(fmt::format("stopped; go on with: antdt run --resume {}", run_dir));
  }
  if (!summary.exit.first_cause.empty()) {
    lines.push_back("first cause: " + summary.exit.first_cause);
  }
  return lines;
}

}  // namespace antdt::launcher
