#include "antdtd/processes/process_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "antdtd/shim/shim_files.h"
#include "antdtd/users/user_files.h"
#include "core/log/log.h"
#include "core/os/owned_fd.h"
#include "core/wire/codec.h"

namespace antdt::antdtd {
namespace {

// "w0.1" -> w0, attempt 1.
std::optional<Member> parse_member(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto worker = parse_worker_id(std::string_view(name).substr(0, dot));
  Member member;
  const char* end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + dot + 1, end, member.attempt.value);
  if (!worker || error != std::errc() || parsed != end) return std::nullopt;
  member.worker = *worker;
  return member;
}

std::vector<std::string> directories_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) names.push_back(it->path().filename().string());
  }
  return names;
}

std::string job_file(const std::string& dir) { return dir + "/job"; }

template <class T>
Result<T> read_record(const std::string& path) {
  ANTDT_TRY(const std::string bytes, read_file(path));
  return wire::decode<T>(bytes);
}

Status make_empty_file(const std::string& path) {
  const OwnedFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail_errno(ErrorKind::kIo, errno, "making " + path);
  return {};
}

// An agent of root without a right to override permissions is barred from directories that a user
// made below the user's own.
Status remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return {};
  return fail(ErrorKind::kObstructed,
              "cannot remove {}: {}; its user may have made directories there that bar the agent: "
              "remove it as root, with rm -r",
              path, error.message());
}

// `record` is what makes a later agent take the directory for that of a process or a job, so it
// goes first: what cannot be removed is not taken for one.
void remove_recorded(const std::string& path, const std::string& record) {
  unlink(record.c_str());
  if (const Status removed = remove_tree(path); !removed) log_warn("{}", removed.error().message);
}

}  // namespace

ProcessStore::ProcessStore(std::string root, FileLock lock, bool of_many_users)
    : state_dir_(std::move(root)),
      jobs_dir_(state_dir_ + "/jobs"),
      lock_(std::move(lock)),
      of_many_users_(of_many_users) {}

Result<ProcessStore> ProcessStore::open(const std::string& state_dir, bool of_many_users) {
  const auto make = [of_many_users](const std::string& path) {
    return of_many_users ? ensure_passable_directory(path) : make_directories(path, 0700);
  };
  ANTDT_RETURN_IF_ERROR(make(state_dir));
  ANTDT_TRY(FileLock lock, FileLock::acquire(state_dir + "/lock"));
  ProcessStore store(state_dir, std::move(lock), of_many_users);
  ANTDT_RETURN_IF_ERROR(make(store.jobs_dir_));
  return store;
}

std::string ProcessStore::directory(const ProcessKey& key) const {
  return jobs_dir_ + "/" + key.job + "/" + file_name(key.member);
}

std::string ProcessStore::shim_directory(const ProcessKey& key) const {
  std::string dir = directory(key);
  struct stat info {};
  const std::string own = own_directory(dir);
  return of_many_users_ && lstat(own.c_str(), &info) == 0 ? own : dir;
}

Status ProcessStore::create(const ProcessKey& key, const wire::StartProcess& start,
                            const UserIdentity& owner) {
  const std::string dir = directory(key);
  // Nothing is made beside what is left: its user may have prepared it for whoever opens it next.
  ANTDT_RETURN_IF_ERROR(remove_tree(dir));
  if (!owner.is_own()) {
    ANTDT_RETURN_IF_ERROR(create_for(owner, key));
    return write_file_atomic(start_file(dir), wire::encode(start), 0600);
  }
  ANTDT_RETURN_IF_ERROR(make_directories(dir, 0700));
  ANTDT_RETURN_IF_ERROR(make_empty_file(pid_file(dir)));
  ANTDT_RETURN_IF_ERROR(make_empty_file(claim_file(dir)));
  ANTDT_RETURN_IF_ERROR(make_empty_file(exit_part_file(dir)));
  return write_file_atomic(start_file(dir), wire::encode(start), 0600);
}

// Everything is made before the user gets the directory and can change it, and the directory is
// new: one that was there already may be the user's. The claim file stays the agent's, which
// touches it; the shim only reads its times.
Status ProcessStore::create_for(const UserIdentity& owner, const ProcessKey& key) const {
  const std::string dir = directory(key);
  ANTDT_RETURN_IF_ERROR(ensure_passable_directory(jobs_dir_ + "/" + key.job));
  ANTDT_RETURN_IF_ERROR(ensure_passable_directory(dir));
  const std::string own = own_directory(dir);
  if (mkdir(own.c_str(), 0700) != 0) return fail_errno(ErrorKind::kIo, errno, "making " + own);
  ANTDT_RETURN_IF_ERROR(make_file_of(owner, pid_file(own)));
  ANTDT_RETURN_IF_ERROR(make_file_of(owner, exit_part_file(own)));
  ANTDT_RETURN_IF_ERROR(make_empty_file(claim_file(own)));
  return give_directory(owner, own);
}

void ProcessStore::touch_claim(const ProcessKey& key) const {
  utimensat(AT_FDCWD, claim_file(shim_directory(key)).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void ProcessStore::forget(const ProcessKey& key) const {
  const std::string dir = directory(key);
  remove_recorded(dir, start_file(dir));
}

Status ProcessStore::save_job(const std::string& job, const JobRecord& record) const {
  const std::string dir = jobs_dir_ + "/" + job;
  ANTDT_RETURN_IF_ERROR(make_directories(dir, 0700));
  return write_file_atomic(job_file(dir), wire::encode(record), 0600);
}

void ProcessStore::forget_job(const std::string& job) const {
  const std::string dir = jobs_dir_ + "/" + job;
  remove_recorded(dir, job_file(dir));
}

std::vector<ProcessStore::Stored> ProcessStore::processes() const {
  std::vector<Stored> found;
  for (const std::string& job : directories_in(jobs_dir_)) {
    for (const std::string& name : directories_in(jobs_dir_ + "/" + job)) {
      const std::string dir = jobs_dir_ + "/" + job + "/" + name;
      const auto member = parse_member(name);
      if (!member) continue;
      auto start = read_record<wire::StartProcess>(start_file(dir));
      if (start) {
        found.push_back({{job, *member}, std::move(*start)});
      } else {
        // The agent was ended while it made the directory; nothing was started from it.
        log_warn("{} is not a whole record of a process and is removed: {}", dir,
                 start.error().message);
        remove_recorded(dir, start_file(dir));
      }
    }
  }
  return found;
}

std::map<std::string, JobRecord> ProcessStore::jobs() const {
  std::map<std::string, JobRecord> found;
  for (const std::string& job : directories_in(jobs_dir_)) {
    auto record = read_record<JobRecord>(job_file(jobs_dir_ + "/" + job));
    if (record) {
      found[job] = std::move(*record);
    } else if (::rmdir((jobs_dir_ + "/" + job).c_str()) == 0) {
      continue;  // empty: an earlier agent ended before it wrote the record, or while it removed it
    } else {
      log_warn("the record of job {} cannot be read: {}", job, record.error().message);
    }
  }
  return found;
}

std::optional<wire::Drain> ProcessStore::drain() const {
  const std::string path = state_dir_ + "/drain";
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  auto drain = read_record<wire::Drain>(path);
  if (drain) return std::move(*drain);
  log_warn("this host counts as drained, because {} cannot be read: {}", path,
           drain.error().message);
  return wire::Drain{"somebody", fmt::format("{} cannot be read", path)};
}

Status ProcessStore::save_drain(const std::optional<wire::Drain>& drain) const {
  const std::string path = state_dir_ + "/drain";
  if (drain) return write_file_atomic(path, wire::encode(*drain), 0600);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(ErrorKind::kIo, errno, "removing " + path);
  }
  return sync_directory(state_dir_);
}

}  // namespace antdt::antdtd
