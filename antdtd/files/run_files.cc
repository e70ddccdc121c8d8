#include "antdtd/files/run_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "core/checkpoint/run_owner.h"
#include "core/ids.h"
#include "core/os/directory.h"
#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

constexpr std::string_view kCheckpoints = "checkpoints";
constexpr std::string_view kLogs = "logs";
constexpr std::string_view kUnfinished = ".tmp-";
constexpr std::string_view kProbe = ".probe-";
constexpr std::string_view kManifest = "MANIFEST.json";
constexpr const char* kHere = "that host";
constexpr std::size_t kMostWritten = 64;
constexpr std::size_t kMostEntries = 100000;
constexpr std::size_t kLongestIdentity = 255;

// The name of a checkpoint, "s0000000012-l1-g1-w0.1", or of one that is being written.
bool is_checkpoint(std::string_view name) {
  return is_file_name(name) && (name.starts_with(kUnfinished) || name.starts_with("s"));
}

tl::unexpected<Error> no_such_path(std::string_view path) {
  return fail(ErrorKind::kUsage,
              "'{}' is no file of a run: it must be checkpoints/<directory>/<file> or logs/<file>",
              path);
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<OwnedFd> open_at(int directory, const std::string& name, int flags) {
  const int fd = ::openat(directory, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) return OwnedFd(fd);
  const bool missing = errno == ENOENT;
  return fail_errno(missing ? ErrorKind::kUnreachable : ErrorKind::kIo, errno, "opening " + name);
}

template <class Use>
Status for_each_entry(int directory, const Use& use) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return fail_errno(ErrorKind::kIo, errno, "reading a directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(copy), &::closedir);
  if (!entries) {
    ::close(copy);
    return fail_errno(ErrorKind::kIo, errno, "reading a directory");
  }
  for (std::size_t n = 0; n < kMostEntries; ++n) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (is_file_name(entry->d_name)) use(std::string(entry->d_name));
  }
  return {};
}

Status write_all(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno(ErrorKind::kIo, errno, "writing");
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Status sync_fd(int fd, const std::string& what) {
  if (::fsync(fd) == 0) return {};
  return fail_errno(ErrorKind::kIo, errno, "syncing " + what);
}

// Checkpoints contain only files. Anything else is left, and rmdir reports it.
Status remove_directory(int parent, const std::string& name) {
  const auto directory = open_at(parent, name, O_RDONLY | O_DIRECTORY);
  if (!directory && directory.error().kind == ErrorKind::kUnreachable) return {};
  if (!directory) return tl::unexpected<Error>(directory.error());
  ANTDT_RETURN_IF_ERROR(for_each_entry(directory->get(), [&](const std::string& file) {
    ::unlinkat(directory->get(), file.c_str(), 0);
  }));
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return fail_errno(ErrorKind::kIo, errno, "removing " + name);
}

}  // namespace

Result<RunFiles> RunFiles::open(const std::string& run_dir) {
  if (!std::filesystem::path(run_dir).is_absolute()) {
    return fail(ErrorKind::kUsage, "the run directory '{}' is not absolute", run_dir);
  }
  return RunFiles(run_dir);
}

Status RunFiles::check_is_of(const std::string& job) const {
  return check_run_owner(run_dir_, job, kHere);
}

Status RunFiles::make() { return make_directories(run_dir_ + "/checkpoints", 0700); }

Result<OwnedFd> RunFiles::open_root() const {
  const int fd = ::open(run_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) return OwnedFd(fd);
  const bool missing = errno == ENOENT;
  return fail_errno(missing ? ErrorKind::kUnreachable : ErrorKind::kIo, errno,
                    "opening " + run_dir_);
}

Result<OwnedFd> RunFiles::open_folder(std::string_view folder) const {
  ANTDT_TRY(const OwnedFd root, open_root());
  return open_at(root.get(), std::string(folder), O_RDONLY | O_DIRECTORY);
}

Result<OwnedFd> RunFiles::open_checkpoint(const std::string& name, bool make) const {
  ANTDT_TRY(const OwnedFd checkpoints, open_folder(kCheckpoints));
  if (make && ::mkdirat(checkpoints.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno,
                      fmt::format("making {}/checkpoints/{}", run_dir_, name));
  }
  return open_at(checkpoints.get(), name, O_RDONLY | O_DIRECTORY);
}

Result<OwnedFd> RunFiles::open_file(const std::string& path, int flags, bool make) const {
  const std::vector<std::string> parts = parts_of(path);
  if (parts.size() == 2 && parts[0] == kLogs && is_file_name(parts[1]) && !make) {
    ANTDT_TRY(const OwnedFd logs, open_folder(kLogs));
    return open_at(logs.get(), parts[1], flags);
  }
  if (parts.size() != 3 || parts[0] != kCheckpoints || !is_checkpoint(parts[1]) ||
      !is_file_name(parts[2])) {
    return no_such_path(path);
  }
  ANTDT_TRY(const OwnedFd directory, open_checkpoint(parts[1], make));
  return open_at(directory.get(), parts[2], flags);
}

Result<wire::FileProbed> RunFiles::probe(const wire::FileProbe& request, const std::string& job) {
  if (!is_file_name(request.name) || !request.name.starts_with(kProbe)) {
    return fail(ErrorKind::kUsage, "'{}' is no name of a probe", request.name);
  }
  ANTDT_RETURN_IF_ERROR(claim_run_directory(run_dir_, job, kHere));
  ANTDT_TRY(const OwnedFd checkpoints, open_folder(kCheckpoints));
  const std::string path = fmt::format("{}/checkpoints/{}", run_dir_, request.name);
  // The identity is the target of a symbolic link, which is never followed. A link is made whole or
  // not at all, so nobody reads half of an identity.
  const std::string own = new_ulid();
  if (::symlinkat(own.c_str(), checkpoints.get(), request.name.c_str()) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making " + path);
  }
  std::string identity(kLongestIdentity, '\0');
  const ssize_t size =
      ::readlinkat(checkpoints.get(), request.name.c_str(), identity.data(), identity.size());
  if (size < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  identity.resize(static_cast<std::size_t>(size));
  return wire::FileProbed{identity};
}

Result<wire::FileListed> RunFiles::list() const {
  wire::FileListed listed;
  const auto checkpoints = open_folder(kCheckpoints);
  if (!checkpoints && checkpoints.error().kind != ErrorKind::kUnreachable) {
    return tl::unexpected<Error>(checkpoints.error());
  }
  if (checkpoints) {
    ANTDT_RETURN_IF_ERROR(for_each_entry(checkpoints->get(), [&](const std::string& name) {
      const std::string manifest = fmt::format("{}/{}", name, kManifest);
      // One that cannot be looked at now may be whole.
      const bool absent = ::faccessat(checkpoints->get(), manifest.c_str(), F_OK, 0) != 0 &&
                          (errno == ENOENT || errno == ENOTDIR);
      listed.checkpoints.push_back({name, 0, !absent && !name.starts_with(kUnfinished)});
    }));
  }
  const auto logs = open_folder(kLogs);
  if (!logs) return listed;  // nothing has run here
  ANTDT_RETURN_IF_ERROR(for_each_entry(logs->get(), [&](const std::string& name) {
    struct stat found {};
    if (::fstatat(logs->get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISREG(found.st_mode)) {
      listed.logs.push_back({name, static_cast<std::uint64_t>(found.st_size), true});
    }
  }));
  return listed;
}

Result<wire::FileData> RunFiles::read(const wire::FileRead& request) const {
  if (request.bytes > wire::kMaxFileChunk) {
    return fail(ErrorKind::kUsage, "a chunk of {} bytes was asked for, and {} are the most",
                request.bytes, wire::kMaxFileChunk);
  }
  ANTDT_TRY(const OwnedFd file, open_file(request.path, O_RDONLY, false));
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return no_such_path(request.path);
  }
  wire::FileData data;
  data.size = static_cast<std::uint64_t>(found.st_size);
  data.inode = found.st_ino;
  if (request.offset >= data.size) return data;
  data.data.resize(std::min(request.bytes, data.size - request.offset));
  std::size_t have = 0;
  while (have < data.data.size()) {
    const ssize_t got = ::pread(file.get(), data.data.data() + have, data.data.size() - have,
                                static_cast<off_t>(request.offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + request.path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  data.data.resize(have);
  return data;
}

RunningSum* RunFiles::written(const std::string& path) {
  const auto found = std::ranges::find(written_, path, &Written::path);
  return found == written_.end() ? nullptr : &found->sum;
}

void RunFiles::remember(const std::string& path, RunningSum sum) {
  std::erase_if(written_, [&](const Written& w) { return w.path == path; });
  written_.push_front({path, std::move(sum)});
  if (written_.size() > kMostWritten) written_.pop_back();
}

void RunFiles::forget(std::string_view below) {
  const std::string prefix = fmt::format("{}/{}/", kCheckpoints, below);
  std::erase_if(written_, [&](const Written& w) { return w.path.starts_with(prefix); });
}

Status RunFiles::write(const wire::FileWrite& request) {
  const std::vector<std::string> parts = parts_of(request.path);
  if (parts.size() != 3 || !parts[1].starts_with(kUnfinished)) {
    return fail(ErrorKind::kUsage, "'{}' may not be written: only unfinished checkpoints may",
                request.path);
  }
  ANTDT_RETURN_IF_ERROR(make());
  const int begin = request.offset == 0 ? O_TRUNC : 0;
  auto file = open_file(request.path, O_WRONLY | O_CREAT | begin, true);
  if (!file) return tl::unexpected<Error>(file.error());
  const Status done = write_all(file->get(), request.data, request.offset);
  if (!done) {
    return fail(ErrorKind::kIo, "writing {}/{}: {}", run_dir_, request.path, done.error().message);
  }
  if (request.offset == 0) remember(request.path, RunningSum());
  RunningSum* const sum = written(request.path);
  if (sum != nullptr && sum->bytes() == request.offset) {
    sum->add(request.data);
  } else {
    std::erase_if(written_, [&](const Written& w) { return w.path == request.path; });
  }
  return {};
}

Result<wire::FileSummed> RunFiles::sum(const wire::FileSum& request) {
  auto file = open_file(request.path, O_RDONLY, false);
  if (!file && file.error().kind == ErrorKind::kUnreachable) return wire::FileSummed{};
  if (!file) return tl::unexpected<Error>(file.error());
  RunningSum sum;
  ANTDT_RETURN_IF_ERROR(sum.add_file(file->get()));
  wire::FileSummed summed{sum.bytes(), sum.hex()};
  // a later write that continues the file goes on from this sum
  remember(request.path, std::move(sum));
  return summed;
}

Status RunFiles::check_file(int directory, const std::string& from,
                            const wire::CheckpointFile& said) {
  if (!is_file_name(said.name)) return no_such_path(said.name);
  auto file = open_at(directory, said.name, O_RDONLY);
  if (!file) {
    return fail(ErrorKind::kCorrupt, "{}/checkpoints/{}/{} is not there", run_dir_, from,
                said.name);
  }
  const std::string path = fmt::format("{}/{}/{}", kCheckpoints, from, said.name);
  struct stat found {};
  const bool sized = ::fstat(file->get(), &found) == 0;
  RunningSum* sum = written(path);
  if (sum == nullptr || !sized || sum->bytes() != static_cast<std::uint64_t>(found.st_size)) {
    RunningSum fresh;
    ANTDT_RETURN_IF_ERROR(fresh.add_file(file->get()));
    remember(path, std::move(fresh));
    sum = written(path);
  }
  if (sum->bytes() == said.bytes && sum->hex() == said.xxh3) return sync_fd(file->get(), path);
  const std::uint64_t bytes = sum->bytes();
  ::unlinkat(directory, said.name.c_str(), 0);
  std::erase_if(written_, [&](const Written& w) { return w.path == path; });
  return fail(ErrorKind::kCorrupt,
              "{}/{} arrived with {} bytes of {}, or with another checksum: it is sent again",
              run_dir_, path, bytes, said.bytes);
}

bool RunFiles::has(const std::string& checkpoint,
                   const std::vector<wire::CheckpointFile>& files) const {
  const auto directory = open_checkpoint(checkpoint, false);
  return directory && std::ranges::all_of(files, [&](const wire::CheckpointFile& said) {
           if (!is_file_name(said.name)) return false;
           const auto file = open_at(directory->get(), said.name, O_RDONLY);
           RunningSum sum;
           return file && sum.add_file(file->get()) && sum.bytes() == said.bytes &&
                  sum.hex() == said.xxh3;
         });
}

Status RunFiles::commit(const wire::FileCommit& request) {
  if (!is_checkpoint(request.from) || !request.from.starts_with(kUnfinished) ||
      !is_checkpoint(request.to) || request.to.starts_with(kUnfinished)) {
    return fail(ErrorKind::kUsage, "'{}' cannot become '{}'", request.from, request.to);
  }
  ANTDT_TRY(const OwnedFd checkpoints, open_folder(kCheckpoints));
  if (has(request.to, request.files)) {
    forget(request.from);
    return remove_directory(checkpoints.get(), request.from);
  }
  ANTDT_TRY(const OwnedFd directory, open_checkpoint(request.from, false));
  for (const wire::CheckpointFile& said : request.files) {
    ANTDT_RETURN_IF_ERROR(check_file(directory.get(), request.from, said));
  }
  ANTDT_RETURN_IF_ERROR(sync_fd(directory.get(), request.from));
  forget(request.from);
  forget(request.to);
  // One of that name is bad. If this ends here, what is sent again is what is now in `from`.
  ANTDT_RETURN_IF_ERROR(remove_directory(checkpoints.get(), request.to));
  if (::renameat(checkpoints.get(), request.from.c_str(), checkpoints.get(), request.to.c_str()) !=
      0) {
    return fail_errno(ErrorKind::kIo, errno,
                      fmt::format("renaming {} to {}", request.from, request.to));
  }
  return sync_fd(checkpoints.get(), std::string(kCheckpoints));
}

Status RunFiles::remove(const wire::FileRemove& request) {
  const bool is_probe = is_file_name(request.name) && request.name.starts_with(kProbe);
  if (!is_probe && !is_checkpoint(request.name)) return no_such_path(request.name);
  const auto checkpoints = open_folder(kCheckpoints);
  if (!checkpoints && checkpoints.error().kind == ErrorKind::kUnreachable) return {};
  if (!checkpoints) return tl::unexpected<Error>(checkpoints.error());
  if (is_probe) {
    ::unlinkat(checkpoints->get(), request.name.c_str(), 0);
    return {};
  }
  forget(request.name);
  return remove_directory(checkpoints->get(), request.name);
}

}  // namespace antdt::antdtd
