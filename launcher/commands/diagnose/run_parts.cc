#include "launcher/commands/diagnose/run_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <vector>

#include "core/os/owned_fd.h"
#include "jobd/disk/run_journal.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/view/worker_logs.h"
#include "shard_server/accounts/audit.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
using launcher::PartKind;
using launcher::ReportPart;
using launcher::ReportSources;

constexpr std::size_t kMostBytes = 1U << 20U;       // of a log
constexpr std::size_t kMostJsonBytes = 16U << 20U;  // of a file that is only of use as a whole
constexpr std::size_t kMostEventBytes = 8U << 20U;
constexpr std::size_t kMostEvents = 10'000;
constexpr std::size_t kMostLogs = 200;
constexpr std::size_t kLongestLog = 40;  // its name; "w123.45.out.1"
constexpr std::size_t kMostListed = 5'000;
constexpr Duration kDaemonAnswers = std::chrono::seconds(3);

struct End {
  std::string text;
  bool cut = false;
};

// The last `most` bytes of a plain file.
Result<End> end_of(const std::string& path, std::size_t most) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0) {
    return fail_errno(ErrorKind::kIo, errno, path);
  }
  if (!S_ISREG(about.st_mode)) return fail(ErrorKind::kIo, "{} is no plain file", path);
  const auto size = static_cast<std::size_t>(about.st_size);
  End end{std::string(std::min(size, most), '\0'), size > most};
  const std::size_t from = size - end.text.size();
  std::size_t have = 0;
  while (have < end.text.size()) {
    const ssize_t got = ::pread(file.get(), end.text.data() + have, end.text.size() - have,
                                static_cast<off_t>(from + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, path);
    if (got == 0) break;  // it was cut meanwhile
    have += static_cast<std::size_t>(got);
  }
  end.text.resize(have);
  return end;
}

void put_lines(ReportSources& sources, const std::string& run_dir, const std::string& name,
               PartKind kind, std::size_t most_bytes, std::size_t lines) {
  auto end = end_of(run_dir + "/" + name, most_bytes);
  if (!end) {
    sources.left_out.push_back(end.error().message);
    return;
  }
  // The beginning of the first line may be missing.
  const std::size_t first = end->text.find('\n');
  if (end->cut && first != std::string::npos) end->text.erase(0, first + 1);
  const std::string_view last = launcher::last_lines_of(end->text, lines);
  const bool cut = end->cut || last.size() < end->text.size();
  sources.parts.push_back({name, std::string(last), kind, cut});
}

void put_whole(ReportSources& sources, const std::string& run_dir, const std::string& name) {
  auto end = end_of(run_dir + "/" + name, kMostJsonBytes);
  if (end && !end->cut) {
    sources.parts.push_back({name, std::move(end->text), PartKind::kJson});
  } else {
    sources.left_out.push_back(end ? name + ": it is too large" : end.error().message);
  }
}

void put_accounts(ReportSources& sources, const std::string& run_dir) {
  const auto journal = jobd::RunJournal::of_run(run_dir);
  if (!journal) {
    sources.left_out.push_back("accounts: " + journal.error().message);
    return;
  }
  if (!journal->may_exist()) {
    sources.left_out.push_back(fmt::format("accounts: there is no {}", journal->name()));
    return;
  }
  const auto accounts = journal->accounts();
  if (!accounts) {
    sources.left_out.push_back("accounts: " + accounts.error().message);
    return;
  }
  const shard_server::AuditReport found = shard_server::audit(*accounts);
  sources.parts.push_back({"accounts.json", shard_server::audit_json(found), PartKind::kJson});
  sources.parts.push_back({"accounts.txt", shard_server::audit_table(found), PartKind::kText});
}

void put_status(ReportSources& sources, const std::string& run_dir) {
  if (present_state(run_dir) != RunState::kRunning) return;
  auto job = reach(run_dir);
  if (!job) {
    sources.left_out.push_back("status: " + job.error().message);
    return;
  }
  const auto answer = job->link.status(0, kDaemonAnswers);
  if (answer) {
    sources.parts.push_back({"status.json", answer->status_json, PartKind::kJson});
  } else {
    sources.left_out.push_back("status: " + answer.error().message);
  }
}

// The names of the logs that were written last.
std::vector<std::string> newest_logs(ReportSources& sources, const std::string& run_dir) {
  std::vector<std::pair<fs::file_time_type, std::string>> logs;
  std::error_code error;
  for (fs::directory_iterator it(run_dir + "/logs", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unknown;
    if (it->symlink_status(unknown).type() != fs::file_type::regular) continue;
    const std::string name = it->path().filename().string();
    if (name.size() > kLongestLog) {
      sources.left_out.push_back(fmt::format("logs/{}: no program of AntDT names a log so", name));
      continue;
    }
    logs.emplace_back(it->last_write_time(unknown), "logs/" + name);
  }
  std::ranges::sort(logs, std::ranges::greater{});
  if (logs.size() > kMostLogs) {
    sources.left_out.push_back(fmt::format("{} logs that were written before the newest {}",
                                           logs.size() - kMostLogs, kMostLogs));
    logs.resize(kMostLogs);
  }
  std::vector<std::string> names;
  for (auto& [time, name] : logs) names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

// What is in the run directory: sizes and names.
std::string listing(const std::string& run_dir) {
  std::string text;
  std::size_t count = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(run_dir, error), end; !error && it != end;
       it.increment(error)) {
    if (++count > kMostListed) return text + "and more\n";
    std::error_code unknown;
    const bool is_file = it->symlink_status(unknown).type() == fs::file_type::regular;
    const auto size = is_file ? fmt::format("{}", it->file_size(unknown)) : std::string("-");
    text += fmt::format("{:>14}  {}\n", size, it->path().lexically_relative(run_dir).string());
  }
  return text;
}

// Those of job daemons that stood by are jobd.j<host>.log.
std::vector<std::string> daemon_logs(const std::string& run_dir) {
  std::vector<std::string> names = {"given-up", "agent.log", "jobd.log", "hooks.log"};
  std::error_code error;
  for (fs::directory_iterator it(run_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (names.size() == kMostLogs) break;
    if (name.starts_with("jobd.j") && name.ends_with(".log")) names.push_back(name);
  }
  return names;
}

}  // namespace

ReportSources read_run_parts(const std::string& run_dir, std::size_t lines) {
  ReportSources sources;
  if (auto configuration = end_of(run_dir + "/job.json", kMostJsonBytes)) {
    sources.configuration = std::move(configuration->text);
  }
  for (const char* name : {"control.json", "data.json", "summary.json"}) {
    const bool there = ::access(fmt::format("{}/{}", run_dir, name).c_str(), F_OK) == 0;
    if (there) put_whole(sources, run_dir, name);
  }
  put_status(sources, run_dir);
  put_accounts(sources, run_dir);
  sources.parts.push_back({"run-directory.txt", listing(run_dir), PartKind::kText});
  put_lines(sources, run_dir, "events.jsonl", PartKind::kJsonLines, kMostEventBytes, kMostEvents);
  for (const std::string& name : daemon_logs(run_dir)) {
    const bool there = ::access(fmt::format("{}/{}", run_dir, name).c_str(), F_OK) == 0;
    if (there) put_lines(sources, run_dir, name, PartKind::kText, kMostBytes, lines);
  }
  for (const std::string& name : newest_logs(sources, run_dir)) {
    put_lines(sources, run_dir, name, PartKind::kText, kMostBytes, lines);
  }
  return sources;
}

}  // namespace antdt::cli
