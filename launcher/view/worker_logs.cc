#include "launcher/view/worker_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "core/os/fs.h"

namespace antdt::launcher {

std::optional<WorkerLog> log_of(const std::string& name) {
  const std::size_t first = name.find('.');
  const std::size_t second = name.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  const auto worker = parse_worker_id(name.substr(0, first));
  const std::string kind = name.substr(second + 1);
  WorkerLog log;
  const char* const end = name.data() + second;
  const auto parsed = std::from_chars(name.data() + first + 1, end, log.attempt.value);
  if (!worker || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (kind != "out" && kind != "err") return std::nullopt;
  log.worker = *worker;
  log.err = kind == "err";
  return log;
}

std::vector<WorkerLog> find_logs(const std::string& run_dir) {
  std::vector<WorkerLog> found;
  std::error_code error;
  const std::string directory = run_dir + "/logs";
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    auto log = log_of(it->path().filename().string());
    if (!log) continue;
    log->path = it->path().string();
    found.push_back(std::move(*log));
  }
  std::ranges::sort(
      found, {}, [](const WorkerLog& log) { return std::tuple(log.worker, log.attempt, log.err); });
  return found;
}

std::vector<WorkerLog> select(const std::vector<WorkerLog>& logs, const LogFilter& filter) {
  std::vector<WorkerLog> selected;
  for (const WorkerLog& log : logs) {
    if (filter.worker && log.worker != *filter.worker) continue;
    if (log.err ? !filter.err : !filter.out) continue;
    const bool newest = std::ranges::none_of(logs, [&](const WorkerLog& other) {
      return other.worker == log.worker && other.attempt > log.attempt;
    });
    if (filter.attempt ? log.attempt != *filter.attempt : !newest) continue;
    selected.push_back(log);
  }
  return selected;
}

std::string_view last_lines_of(std::string_view text, std::size_t lines) {
  std::size_t from = text.size();
  if (from > 0 && text.back() == '\n') --from;
  for (; from > 0; --from) {
    if (text[from - 1] == '\n' && --lines == 0) break;
  }
  return lines == 0 || from == 0 ? text.substr(from) : text;
}

std::vector<std::string> take_lines(std::string& text, bool last) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  text.erase(0, from);
  if (last && !text.empty()) lines.push_back(std::exchange(text, ""));
  return lines;
}

LogReader::LogReader(std::string path, std::optional<std::size_t> lines)
    : path_(std::move(path)), lines_(lines) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  text_ = read_file(path_ + ".1").value_or("");
  read_open_file();
  if (lines_) text_ = *lines_ == 0 ? "" : std::string(last_lines_of(text_, *lines_));
}

LogReader::LogReader(LogReader&& other) noexcept
    : path_(std::move(other.path_)),
      lines_(other.lines_),
      fd_(std::exchange(other.fd_, -1)),
      text_(std::move(other.text_)) {}

LogReader::~LogReader() {
  if (fd_ >= 0) ::close(fd_);
}

void LogReader::read_open_file() {
  std::array<char, 65536> buffer;
  while (fd_ >= 0) {
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got <= 0) return;
    text_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// Whether the name now refers to another file than the open one.
bool LogReader::reopen_if_rotated() {
  struct stat open_file {};
  struct stat named {};
  if (::stat(path_.c_str(), &named) != 0) return false;
  const bool same = fd_ >= 0 && ::fstat(fd_, &open_file) == 0 && open_file.st_ino == named.st_ino &&
                    open_file.st_dev == named.st_dev;
  if (same) return false;
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  return fd_ >= 0;
}

std::vector<std::string> LogReader::read(bool last) {
  read_open_file();
  if (reopen_if_rotated()) read_open_file();
  return take_lines(text_, last);
}

}  // namespace antdt::launcher
