#include "launcher/commands/show/host_logs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "launcher/config/cluster.h"
#include "launcher/start/run_directory.h"

namespace antdt::cli {
namespace {

using launcher::WorkerLog;

constexpr Duration kLogsAnswer = std::chrono::seconds(5);
constexpr Duration kConnectAgain = std::chrono::seconds(2);
constexpr std::uint64_t kLogChunk = 1ULL << 20;

std::string path_of_log(const std::string& name) { return "logs/" + name; }

}  // namespace

// ------------------------------------------------------------------ the hosts

HostLogs::HostLogs(std::string run_dir, std::string job)
    : run_dir_(std::move(run_dir)),
      job_(std::move(job)),
      context_(std::make_unique<transport::Context>()) {}

Result<std::unique_ptr<HostLogs>> HostLogs::of_run(const std::string& run_dir) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  std::unique_ptr<HostLogs> logs(new HostLogs(run_dir, config.job.id));
  if (config.cluster.hosts.empty()) return logs;
  ANTDT_TRY(const launcher::ClusterKeys keys, launcher::load_cluster_keys(config.cluster));
  for (std::size_t i = 0; i < config.cluster.hosts.size(); ++i) {
    logs->hosts_.push_back({{config.cluster.hosts[i], keys.job, keys.agents[i].z85}});
  }
  return logs;
}

HostLogs::~HostLogs() { stop_ = true; }

Result<jobd::HostFiles> HostLogs::open(const jobd::HostAddress& address) {
  jobd::HostFiles::Watch watch;
  watch.stop = &stop_;
  watch.silence = watch.answers = kLogsAnswer;
  return jobd::HostFiles::open(*context_, address, job_, run_dir_, std::move(watch));
}

// Connections are made beside reading from other hosts. A host that is away delays only the first
// call.
void HostLogs::connect() {
  for (Host& host : hosts_) {
    if (host.files || host.opening || clock_.now() < host.not_before) continue;
    host.opening =
        std::async(std::launch::async, [this, address = host.address] { return open(address); });
  }
  const bool waits = !std::exchange(waited_, true);
  for (Host& host : hosts_) {
    if (!host.opening) continue;
    const bool done = waits || host.opening->wait_for(Duration(0)) == std::future_status::ready;
    if (done) std::ignore = connected(host, host.opening->get());
    if (done) host.opening.reset();
  }
}

bool HostLogs::connected(Host& host, Result<jobd::HostFiles> files) {
  if (!files) {
    failed(host, files.error());
    return false;
  }
  host.trouble.clear();
  host.files.emplace(std::move(*files));
  return true;
}

void HostLogs::failed(Host& host, const Error& error) {
  host.files.reset();
  host.trouble = error.message;
  host.not_before = clock_.now() + kConnectAgain;
}

// A file service that has ended, as it does with its job, is requested again at once.
template <class T, class M>
Result<T> HostLogs::ask(Host& host, const M& message) {
  if (!host.files) return fail(ErrorKind::kUnreachable, "{}", host.trouble);
  Result<T> answer = host.files->ask<T>(message);
  if (answer || answer.error().kind == ErrorKind::kCorrupt) return answer;
  host.files.reset();
  if (!connected(host, open(host.address))) return answer;
  answer = host.files->ask<T>(message);
  if (!answer && answer.error().kind != ErrorKind::kCorrupt) failed(host, answer.error());
  return answer;
}

std::vector<WorkerLog> HostLogs::find() {
  connect();
  std::vector<WorkerLog> found;
  for (Host& host : hosts_) {
    const auto listed = ask<wire::FileListed>(host, wire::FileList{});
    if (!listed) continue;
    for (const wire::FileEntry& entry : listed->logs) {
      auto log = launcher::log_of(entry.name);
      if (!log) continue;
      log->host = host.address.endpoint;
      log->path = entry.name;
      found.push_back(std::move(*log));
    }
  }
  std::ranges::sort(
      found, {}, [](const WorkerLog& log) { return std::tuple(log.worker, log.attempt, log.err); });
  return found;
}

Result<wire::FileData> HostLogs::read(const std::string& host, const std::string& name,
                                      std::uint64_t offset, std::uint64_t bytes) {
  const auto found =
      std::ranges::find_if(hosts_, [&](const Host& h) { return h.address.endpoint == host; });
  if (found == hosts_.end()) return fail(ErrorKind::kUsage, "{} is no host of the run", host);
  return ask<wire::FileData>(*found, wire::FileRead{path_of_log(name), offset, bytes});
}

std::map<std::string, std::string> HostLogs::troubles() const {
  std::map<std::string, std::string> troubles;
  for (const Host& host : hosts_) {
    if (!host.trouble.empty()) troubles[host.address.endpoint] = host.trouble;
  }
  return troubles;
}

// ----------------------------------------------------------------------- a log

HostLogReader::HostLogReader(HostLogs& logs, const WorkerLog& log, std::optional<std::size_t> lines)
    : logs_(logs), host_(log.host), name_(log.path), lines_(lines) {}

// First reads what was rotated away, then the file itself. If the file is rotated in between, the
// part that was rotated away is the file that was found first.
void HostLogReader::begin() {
  text_.clear();
  offset_ = 0;
  const auto now = logs_.read(host_, name_, 0, 0);
  if (!now) return;
  inode_ = now->inode;
  const auto before = logs_.read(host_, name_ + ".1", 0, 0);
  if (!before && before.error().kind != ErrorKind::kCorrupt) return;
  if (before && before->inode != inode_) {
    const std::uint64_t inode = std::exchange(inode_, before->inode);
    if (!read_to_end(name_ + ".1")) return;
    inode_ = inode;
  }
  offset_ = 0;
  begun_ = true;
  read_on();
  if (lines_) text_ = *lines_ == 0 ? "" : std::string(launcher::last_lines_of(text_, *lines_));
}

// Reads up to the file's present end; false if the name is another file by now, or cannot be read.
bool HostLogReader::read_to_end(const std::string& name) {
  for (;;) {
    const auto data = logs_.read(host_, name, offset_, kLogChunk);
    if (!data || data->inode != inode_) return false;
    text_ += data->data;
    offset_ += data->data.size();
    if (data->data.empty() || offset_ >= data->size) return true;
  }
}

void HostLogReader::read_on() {
  if (read_to_end(name_)) return;
  const auto next = logs_.read(host_, name_, 0, 0);
  if (!next || next->inode == inode_) return;  // it cannot be read now
  std::ignore = read_to_end(name_ + ".1");     // reads what was written into it before the rotation
  inode_ = next->inode;
  offset_ = 0;
  std::ignore = read_to_end(name_);
}

std::vector<std::string> HostLogReader::read(bool last) {
  begun_ ? read_on() : begin();
  return launcher::take_lines(text_, last);
}

}  // namespace antdt::cli
