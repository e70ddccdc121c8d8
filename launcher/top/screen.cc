#include "launcher/top/screen.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.h"
#include "launcher/view/status_view.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher::top {
namespace {

constexpr std::size_t kLongestCell = 400;  // bytes
constexpr std::size_t kLongestName = 28;   // columns, of a job in the table
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
      lines.push_back(
          {clean(fmt::format("{}: {}{}", job.job, progress_line(*job.status), waiting))});
    }
  }
  for (const HostSeen& host : seen.hosts) {
    const bool answers = host.trouble.empty();
    lines.push_back({clean(fmt::format("{}: {}", host.address, answers ? host.said : host.trouble)),
                     answers ? Look::kPlain : Look::kTrouble});
  }
  return lines;
}

std::vector<std::string> cells_of(const Row& row, bool selected) {
  const report::WorkerStatus& w = row.worker;
  return {selected ? ">" : "",
          cut(clean(row.job), kLongestName),
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
  for (std::size_t i = 0; i < rows.size(); ++i) cells.push_back(cells_of(rows[i], i == selected));
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
  return {fmt::format(
      "sorted by {} (s slow, c CPU, l lost, n names)  Enter opens  e evicts  q leaves", top.sort)};
}

// The part of the rows that fits and holds the selected one; the table's first line is its header.
std::vector<Line> part_of(std::vector<Line> lines, std::size_t selected, std::size_t room) {
  if (lines.size() <= room + 1) return lines;
  const std::size_t first = selected < room ? 0 : selected - room + 1;
  std::vector<Line> part = {lines.front()};
  for (std::size_t i = first; i < first + room; ++i) part.push_back(std::move(lines[i + 1]));
  return part;
}

std::string nobody(const Top& top) {
  return top.heard ? "no job of yours runs; antdt run starts one" : "asking the jobs";
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
    const std::size_t used = lines.size() + 2;
    top.page = size.rows > used ? size.rows - used : 1;
    for (Line& line : part_of(table(rows, selected), selected, top.page)) {
      lines.push_back(std::move(line));
    }
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
