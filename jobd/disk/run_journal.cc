#include "jobd/disk/run_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/log/log.h"
#include "core/transport/keys.h"
#include "jobd/standby/run_files.h"
#include "launcher/config/config_json.h"
#include "launcher/start/run_directory.h"
#include "shard_server/accounts/audit.h"
#include "shard_server/journal/sqlite_store.h"
#include "store/client.h"
#include "store/etcd_journal.h"

namespace antdt::jobd {
namespace {

constexpr const char* kLockName = "jobd.lock";

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Equal only for the same file in the same run of this machine's system.
std::string identity_of(const std::string& lock_file) {
  struct stat about {};
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  if (!boot || ::stat(lock_file.c_str(), &about) != 0) return {};
  return fmt::format("{} {}:{}", boot->substr(0, boot->find('\n')), about.st_dev, about.st_ino);
}

std::string this_process() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  return fmt::format("host {}, process {}", name, ::getpid());
}

// The journal and its write-ahead log get other names beside the old ones, by which SQLite still
// finds that they belong together. The journal is renamed first: a log without a journal is
// useless, but a journal without its log would be valid and out of date.
// "" if there is nothing to rename. The directory is made if this host never had the run.
Result<std::string> rename_aside(const std::string& path, const std::string& directory) {
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  if (!exists(path) && !exists(path + "-wal")) return "";
  int number = 1;
  const auto aside = [&] { return fmt::format("{}.aside-{}", path, number); };
  while (exists(aside()) || exists(aside() + "-wal")) ++number;
  for (const char* part : {"", "-wal", "-shm"}) {
    if (!exists(path + part)) continue;
    std::error_code error;
    std::filesystem::rename(path + part, aside() + part, error);
    if (error) return fail_errno(ErrorKind::kIo, error.value(), "rename " + path + part);
  }
  ANTDT_RETURN_IF_ERROR(sync_directory(directory));
  return aside();
}

}  // namespace

std::optional<EtcdAddress> etcd_of(const launcher::ClusterSection& cluster) {
  if (cluster.store.empty()) return {};
  auto members = etcd_members(cluster.store);
  ANTDT_CHECK(members, "cluster.store was not checked: {}", cluster.store);
  return EtcdAddress{std::move(*members), cluster.store_ca,   cluster.store_cert,
                     cluster.store_key,   cluster.store_user, cluster.store_password_file,
                     cluster.store_prefix};
}

RunJournal::RunJournal(const launcher::JobConfig& config, std::string run_dir,
                       const std::string& state_dir)
    : run_dir_(std::move(run_dir)),
      state_dir_(state_dir),
      job_(config.job.id),
      keys_(config.cluster.keys),
      etcd_(etcd_of(config.cluster)),
      lease_(std::chrono::duration_cast<std::chrono::seconds>(config.cluster.store_lease)) {}

Result<RunJournal> RunJournal::of_run(const std::string& run_dir) {
  ANTDT_TRY(const launcher::JobConfig config, launcher::load_effective(run_dir));
  // A run that was never started has no control.json. Its journal, if any, is in the run directory.
  const auto control = launcher::read_control(run_dir);
  return RunJournal(config, run_dir, control ? control->state_dir : run_dir);
}

std::string RunJournal::name_in_etcd() const {
  const auto name = read_file(name_file());
  return name ? name->substr(0, name->find('\n')) : job_;
}

std::string RunJournal::name() const {
  if (!etcd_) return file();
  return fmt::format("journal of job {} in {}", name_in_etcd(), to_string(*etcd_));
}

std::string RunJournal::place() const {
  return etcd_ ? to_string(*etcd_) : "the filesystem of " + state_dir_;
}

bool RunJournal::may_exist() const { return etcd_ || exists(file()); }

std::string RunJournal::holder_elsewhere() const {
  if (!etcd_) return {};
  const auto client = store::Client::make(*etcd_);
  if (!client) return {};
  const auto job = store::look_at_job(**client, name_in_etcd());
  if (!job) return {};
  const bool was_here =
      !job->file_lock.empty() && job->file_lock == identity_of(run_dir_ + "/" + kLockName);
  return was_here ? std::string() : job->holder;
}

Result<std::string> RunJournal::kept_file(const std::string& name) const {
  if (!etcd_) return fail(ErrorKind::kUsage, "{} keeps no files of the run", this->name());
  ANTDT_TRY(const auto client, store::Client::make(*etcd_));
  ANTDT_TRY(const transport::KeyPair key, transport::load_key_pair(keys_ + "/job.key"));
  ANTDT_TRY(const std::string sealed, store::read_run_file(*client, name_in_etcd(), name));
  ANTDT_TRY(std::string bytes, RunFileSeal(key, name_in_etcd()).open(name, sealed));
  if (bytes.empty()) return fail(ErrorKind::kUsage, "{} has no {}", this->name(), name);
  return bytes;
}

Status RunJournal::check() const {
  if (!etcd_) return {};
  ANTDT_TRY(const auto client, store::Client::make(*etcd_));
  const auto answer = store::check_access(*client);
  if (answer) return {};
  return fail(answer.error().kind,
              "cluster.store: {} cannot be used: {}. Look at its members with etcdctl endpoint "
              "health, or leave cluster.store out, and a file of this host keeps the journal",
              to_string(*etcd_), answer.error().message);
}

Result<std::unique_ptr<shard_server::JournalStore>> RunJournal::open(Incarnation first,
                                                                     const FileLock& lock,
                                                                     bool is_standby) const {
  if (!etcd_) {
    shard_server::SqliteOptions options;
    options.first_incarnation = first;
    return shard_server::open_sqlite_store(file(), options);
  }
  ANTDT_TRY(auto client, store::Client::make(*etcd_));
  ANTDT_TRY(auto renewing, store::Client::make(*etcd_));
  store::EtcdJournalOptions options;
  options.job = name_in_etcd();
  options.where = to_string(*etcd_);
  options.holder = this_process();
  options.file_lock = identity_of(lock.path());
  options.lease = lease_;
  options.waits_for_lease = !is_standby;
  options.first_incarnation = first;
  options.hold = [renewing = std::shared_ptr<store::Client>(std::move(renewing)),
                  length = lease_](store::LeaseId lease) {
    return std::make_unique<store::LeaseThread>(renewing, lease, length);
  };
  options.wait = [](Duration time) { std::this_thread::sleep_for(time); };
  options.now = [] { return SteadyClock().now(); };
  options.tell = [](const std::string& text) { log_warn("{}", text); };
  return store::open_etcd_journal(std::move(client), std::move(options));
}

Result<shard_server::JournalContent> RunJournal::read() const {
  if (!etcd_) return shard_server::read_journal(file());
  const auto read_from_etcd = [this]() -> Result<shard_server::StoredJournal> {
    ANTDT_TRY(const auto client, store::Client::make(*etcd_));
    return store::read_etcd_journal(*client, name_in_etcd());
  };
  const auto found = read_from_etcd();
  if (!found) return fail(found.error().kind, "{}: {}", name(), found.error().message);
  return shard_server::content_of(*found, name());
}

Result<shard_server::Accounts> RunJournal::accounts() const {
  ANTDT_TRY(const shard_server::JournalContent content, read());
  return shard_server::accounts_of(content, name());
}

Result<std::string> RunJournal::put_aside() const {
  if (!etcd_) return rename_aside(file(), state_dir_);
  const std::string before = name();
  const std::string present = name_in_etcd();
  const std::size_t number_at = job_.size() + 1;  // "<job>-2"
  const int number = present.size() > number_at ? std::atoi(present.c_str() + number_at) + 1 : 2;
  ANTDT_RETURN_IF_ERROR(write_file_atomic(name_file(), fmt::format("{}-{}\n", job_, number), 0600));
  return before;
}

}  // namespace antdt::jobd
