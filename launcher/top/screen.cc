#include "launcher/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/utf8.h"
#include "launcher/view/status_view.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher::top {
namespace {

constexpr std::size_t kLongestCell = 400;  // bytes
constexpr std::size_t kLongestName = 28;   // columns, of a job in the table
constexpr std::size_t kLongestOnly = 12;   // the same if all rows are of one job
constexpr std::size_t kLinesOfWhy = 2;     // under the table, if the table is too wide
constexpr std::size_t kFewestRows = 3;     // of workers, however many jobs there are

// How a line looks where there are colours (ECMA-48).
enum class Look { kPlain, kHeading, kSelected, kSlow, kTrouble };

struct Line {
  std::string text;
  Look look = Look::kPlain;
};

const char* code_of(Look look) {
  switch (look) {
    case Look::kPlain:
      return "";
    case Look::kHeading:
      return "\x1b[1m";
    case Look::kSelected:
      return "\x1b[7m";
    case Look::kSlow:
      return "\x1b[33m";
    case Look::kTrouble:
      return "\x1b[31m";
  }
  return "";
}

// What comes from other programs, without control characters.
std::string clean(const std::string& text) { return valid_utf8(text, kLongestCell); }

std::vector<Line> job_lines(const Seen& seen) {
  std::vector<Line> lines;
  for (const JobSeen& job : seen.jobs) {
    if (!job.trouble.empty()) {
      lines.push_back({clean(fmt::format("{}: {}", job.job, job.trouble)), Look::kTrouble});
    } else if (job.status) {
      const std::string waiting =
          job.status->waiting_for.empty() ? "" : "  waiting for " + job.status->waiting_for;
      const std::string paused = job.status->paused ? "  " + paused_line(*job.status) : "";
      lines.push_back(
          {clean(fmt::format("{}: {}{}{}", job.job, progress_line(*job.status), paused, waiting)),
           job.status->paused ? Look::kTrouble : Look::kPlain});
    }
  }
  for (const HostSeen& host : seen.hosts) {
    const bool answers = host.trouble.empty();
    lines.push_back({clean(fmt::format("{}: {}", host.address, answers ? host.said : host.trouble)),
                     answers ? Look::kPlain : Look::kTrouble});
  }
  return lines;
}

// How many columns of the jobs' ids are shown: as many as tell them apart, and so much that the
// name is seen, which ends at the last '-'. The whole ids are above the table.
std::size_t columns_of_jobs(const std::vector<Row>& rows) {
  std::size_t wanted = 0;
  bool several = false;
  const std::string* before = nullptr;
  std::set<std::string> jobs;
  for (const Row& row : rows) jobs.insert(row.job);
  for (const std::string& job : jobs) {
    const std::size_t name = job.rfind('-');
    wanted = std::max(wanted, name == std::string::npos ? job.size() : name + 3);
    if (before != nullptr) {  // neighbours have the longest common beginnings
      const auto differs = std::ranges::mismatch(*before, job).in2;
      wanted = std::max(wanted, static_cast<std::size_t>(differs - job.begin()) + 2);
      several = true;
    }
    before = &job;
  }
  return std::min(wanted, several ? kLongestName : kLongestOnly);
}

std::vector<std::string> cells_of(const Row& row, bool selected, std::size_t columns_of_job) {
  const report::WorkerStatus& w = row.worker;
  return {selected ? ">" : "",
          cut(clean(row.job), columns_of_job),
          clean(w.id),
          clean(w.host),
          clean(w.state),
          w.samples_per_second > 0
              ? grouped(static_cast<std::uint64_t>(std::min(w.samples_per_second, 1e15) + 0.5))
              : "-",
          w.cpus ? fmt::format("{:.0f}%", 100 * std::min(*w.cpus, 1e6)) : "-",
          row.lost ? fmt::format("{:.0f}%", 100 * *row.lost) : "-",
          row.most_lost,
          clean(row.why)};
}

// The header, and a line for each row.
std::vector<Line> table(const std::vector<Row>& rows, std::size_t selected) {
  std::vector<std::vector<std::string>> cells;
  const std::size_t columns_of_job = columns_of_jobs(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cells.push_back(cells_of(rows[i], i == selected, columns_of_job));
  }
  const auto text = text_table(
      {"", "job", "worker", "host", "state", "samples/s#", "CPU#", "lost#", "most by", "why"},
      cells);
  std::vector<Line> lines = {{text.front(), Look::kHeading}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool slow = rows[i].worker.straggler.has_value() || !is_running(rows[i].worker);
    lines.push_back({text[i + 1], i == selected ? Look::kSelected
                                  : slow        ? Look::kSlow
                                                : Look::kPlain});
  }
  return lines;
}

std::vector<Line> worker_lines(const Row& row) {
  const report::WorkerStatus& w = row.worker;
  std::vector<Line> lines = {
      {clean(fmt::format("{} of {}, on {}", w.id, row.job, w.host)), Look::kHeading}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) lines.push_back({clean(fmt::format("  {:<12} {}", name, value))});
  };
  add("run", row.run_dir);
  add("state", w.state);
  add("process", w.pid == 0 ? "none" : fmt::format("{}, attempt {}", w.pid, w.attempt));
  add("rank", w.rank ? std::to_string(*w.rank) : "");
  add("device", w.device.name);
  add("batch", std::to_string(w.batch));
  add("samples", fmt::format("{}, {:.0f} a second", grouped(w.samples), w.samples_per_second));
  add("CPUs", w.cpus ? fmt::format("{:.2f}", *w.cpus) : "");
  add("verdict", w.verdict);
  add("why", row.why);
  if (w.lost_time) {
    const report::TimeSpent& t = *w.lost_time;
    add("time", fmt::format("compute {}, data {}, waiting for others {}, for records {}",
                            clock_text(t.compute), clock_text(t.data),
                            clock_text(t.collective_wait), clock_text(t.shard_wait)));
    add("", fmt::format("new groups {}, checkpoints {}, starting {}, other {}",
                        clock_text(t.reconfigure), clock_text(t.checkpoint), clock_text(t.startup),
                        clock_text(t.other)));
  }
  add("logs", fmt::format("antdt logs {} --worker {} -f", row.run_dir, w.id));
  return lines;
}

Line bottom(const Top& top) {
  if (top.question) {
    const Question& q = *top.question;
    return {clean(fmt::format("let {} of {} leave {}? y: yes, any other key: no", q.worker, q.job,
                              q.host)),
            Look::kTrouble};
  }
  if (!top.told.empty()) return {clean(top.told), Look::kHeading};
  return {fmt::format("sorted by {}: s slow c CPU l lost n names; Enter opens e evicts q leaves",
                      top.sort)};
}

// The part of the rows that fits and holds the selected one; the table's first line is its header.
std::vector<Line> part_of(std::vector<Line> lines, std::size_t selected, std::size_t room) {
  if (lines.size() <= room + 1) return lines;
  const std::size_t first = selected < room ? 0 : selected - room + 1;
  std::vector<Line> part = {lines.front()};
  for (std::size_t i = first; i < first + room; ++i) part.push_back(std::move(lines[i + 1]));
  return part;
}

// For a table that is wider than the screen: why the selected worker is slow, as its last column
// says.
std::vector<Line> why_lines(const Row& row, std::size_t columns) {
  std::vector<Line> lines;
  const std::string why =
      row.why.empty() ? "" : clean(fmt::format("{}: {}", row.worker.id, row.why));
  for (std::string& line : wrapped(why, columns, kLinesOfWhy)) lines.push_back({std::move(line)});
  lines.resize(kLinesOfWhy);  // so that the table stays where it is, whichever worker is selected
  return lines;
}

std::string nobody(const Top& top) {
  return top.heard ? "none of your jobs is running; antdt run starts one" : "asking the jobs";
}

}  // namespace

std::vector<std::string> draw(Top& top, Size size, bool colours) {
  const std::vector<Row> rows = top.rows();
  const std::size_t selected = top.place(rows);
  std::vector<Line> lines = job_lines(top.seen);
  const std::size_t most = size.rows > kFewestRows + 2 ? size.rows - kFewestRows - 2 : 0;
  if (lines.size() > most) lines.resize(most);
  if (rows.empty()) {
    if (lines.empty()) lines.push_back({nobody(top)});
  } else if (top.open) {
    for (Line& line : worker_lines(rows[selected])) lines.push_back(std::move(line));
  } else {
    std::vector<Line> all = table(rows, selected);
    const bool too_wide = std::ranges::any_of(
        all, [&](const Line& line) { return columns_of(line.text) > size.columns; });
    const std::size_t used = lines.size() + 2 + (too_wide ? kLinesOfWhy : 0);
    top.page = size.rows > used ? size.rows - used : 1;
    for (Line& line : part_of(std::move(all), selected, top.page)) lines.push_back(std::move(line));
    if (too_wide)
      std::ranges::move(why_lines(rows[selected], size.columns), std::back_inserter(lines));
  }
  const std::size_t body = size.rows > 0 ? size.rows - 1 : 0;
  if (lines.size() > body) lines.resize(body);
  lines.push_back(bottom(top));
  std::vector<std::string> drawn;
  for (const Line& line : lines) {
    const std::string text = cut(line.text, size.columns);
    const bool plain = !colours || line.look == Look::kPlain;
    drawn.push_back(plain ? text : code_of(line.look) + text + "\x1b[0m");
  }
  return drawn;
}

std::vector<std::string> draw_whole(const Top& top) {
  const std::vector<Row> rows = top.rows();
  std::vector<std::string> drawn;
  for (const Line& line : job_lines(top.seen)) drawn.push_back(line.text);
  if (rows.empty()) {
    if (drawn.empty()) drawn.push_back(nobody(top));
    return drawn;
  }
  for (const Line& line : table(rows, rows.size())) drawn.push_back(line.text);
  return drawn;
}

}  // namespace antdt::launcher::top
