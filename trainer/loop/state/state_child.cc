#include "trainer/loop/state/state_child.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>

#include "core/os/forks/forked_copy.h"
#include "core/os/pipe.h"
#include "core/sync_pace.h"

namespace antdt::trainer {
namespace {

// Everything that the child needs, prepared before the fork.
struct ChildFile {
  std::string path;
  std::vector<std::span<const std::byte>> parts;
};
struct ChildWork {
  std::string above, directory;
  std::vector<ChildFile> files;
};

// ------------------------------------------------ in the child, without any lock

Duration now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
}

void say(ChildReport::Kind kind, std::uint64_t file, std::uint64_t value) {
  const ChildReport report{kind, file, value};
  ssize_t written = 0;
  do {
    written = ::write(kReportsFd, &report, sizeof report);
  } while (written < 0 && errno == EINTR);
  if (written != sizeof report) _exit(1);  // nobody reads the reports any more
}

// Returns 0 or an errno.
int write_out(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int sync(int fd) { return ::fsync(fd) == 0 ? 0 : errno; }

struct Progress {
  SyncPace pace;
  std::uint64_t synced = 0;
  std::size_t unsynced = 0;
  Duration since = now();
};

int synced(int fd, Progress& progress) {
  if (const int error = sync(fd); error != 0) return error;
  const Duration at = now();
  progress.pace.took(at - progress.since);
  progress.since = at;
  progress.synced += progress.unsynced;
  progress.unsynced = 0;
  say(ChildReport::kWritten, 0, progress.synced);
  return 0;
}

int write_part(int fd, std::span<const std::byte> part, Progress& progress, XXH3_state_t& sum) {
  while (!part.empty()) {
    const std::size_t room =
        progress.pace.part() - std::min(progress.pace.part(), progress.unsynced);
    const auto chunk =
        part.first(std::min({part.size(), std::max(room, SyncPace::kLeast), std::size_t{1} << 20}));
    XXH3_64bits_update(&sum, chunk.data(), chunk.size());
    if (const int error = write_out(fd, chunk); error != 0) return error;
    progress.unsynced += chunk.size();
    part = part.subspan(chunk.size());
    if (progress.unsynced < progress.pace.part()) continue;
    if (const int error = synced(fd, progress); error != 0) return error;
  }
  return 0;
}

int write_one(const ChildFile& file, std::uint64_t index, Progress& progress) {
  const int fd = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  XXH3_state_t sum;
  XXH3_64bits_reset(&sum);
  for (const auto& part : file.parts) {
    if (const int error = write_part(fd, part, progress, sum); error != 0) return error;
  }
  if (const int error = synced(fd, progress); error != 0) return error;
  if (::close(fd) != 0) return errno;
  say(ChildReport::kFile, index, XXH3_64bits_digest(&sum));
  return 0;
}

int make_directory(const std::string& path) {
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

int sync_directory_at(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = sync(fd);
  ::close(fd);
  return error;
}

[[noreturn]] void fail_child(const ChildWork& work, std::uint64_t file, int error) {
  for (const ChildFile& written : work.files) ::unlink(written.path.c_str());
  ::rmdir(work.directory.c_str());
  say(ChildReport::kFailed, file, static_cast<std::uint64_t>(error));
  _exit(1);
}

[[noreturn]] void run_child(const ChildWork& work) {
  const std::uint64_t none = work.files.size();
  int error = make_directory(work.above);
  if (error == 0) error = make_directory(work.directory);
  if (error != 0) fail_child(work, none, error);
  Progress progress;
  for (std::uint64_t i = 0; i < work.files.size(); ++i) {
    error = write_one(work.files[i], i, progress);
    if (error != 0) fail_child(work, i, error);
  }
  error = sync_directory_at(work.directory);
  if (error != 0) fail_child(work, none, error);
  say(ChildReport::kDone, 0, 0);
  _exit(0);
}

// ------------------------------------------------------------------ in the parent

ChildWork work_of(const std::string& directory, const std::vector<StateFile>& files) {
  ChildWork work;
  work.directory = directory;
  work.above = directory.substr(0, directory.rfind('/'));
  for (const StateFile& file : files) {
    ChildFile& to_write = work.files.emplace_back();
    to_write.path = directory + "/" + file.name;
    to_write.parts = file.parts;
    if (file.parts.empty()) to_write.parts.push_back(std::as_bytes(std::span(file.text)));
  }
  return work;
}

}  // namespace

Result<StateChild> write_in_child(const std::string& directory,
                                  const std::vector<StateFile>& files) {
  const ChildWork work = work_of(directory, files);
  Pipe pipe;
  if (!pipe.open()) return fail_errno(ErrorKind::kIo, errno, "a pipe to write a checkpoint");
  ANTDT_TRY(const pid_t child,
            fork_copy(pipe.write.get(), ForkHandlers::kSkip, "write a checkpoint"));
  if (child == 0) run_child(work);
  return StateChild{child, std::move(pipe.read)};
}

}  // namespace antdt::trainer
