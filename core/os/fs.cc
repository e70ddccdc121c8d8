#include "core/os/fs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace antdt {

namespace {

constexpr std::size_t kWriteBuffer = 1U << 16;

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode) {
  ANTDT_TRY(FileWriter writer, FileWriter::create(path, mode));
  writer.write(bytes);
  return writer.finish();
}

Result<FileWriter> FileWriter::create(const std::string& path, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "making a file beside " + path);
  std::FILE* file = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : nullptr;
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    unlink(temporary.c_str());
    return fail_errno(ErrorKind::kIo, error, "opening " + temporary);
  }
  setvbuf(file, nullptr, _IOFBF, kWriteBuffer);
  return FileWriter(path, std::move(temporary), file);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      file_(std::exchange(other.file_, nullptr)),
      error_(other.error_),
      bytes_(other.bytes_) {}

FileWriter::~FileWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

void FileWriter::write(std::string_view bytes) {
  bytes_ += bytes.size();
  if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    error_ = errno;
  }
}

void FileWriter::sync() {
  if (error_ == 0 && (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0)) error_ = errno;
}

void FileWriter::keep_fresh() {
  if (file_ == nullptr) return;
  struct stat info {};
  const int fd = fileno(file_);
  if (fstat(fd, &info) != 0 || std::time(nullptr) - info.st_mtim.tv_sec <= kFreshFor.count())
    return;
  std::ignore = futimens(fd, nullptr);
}

Status FileWriter::finish() {
  sync();
  if (error_ == 0 && rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) return fail_errno(ErrorKind::kIo, error_, "writing " + path_);
  std::fclose(std::exchange(file_, nullptr));
  return sync_directory(parent_of(path_));
}

Result<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  struct stat info {};
  std::string text;
  if (fstat(fd, &info) == 0 && info.st_size > 0)
    text.reserve(static_cast<std::size_t>(info.st_size));
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int error = errno;
      close(fd);
      if (got < 0) return fail_errno(ErrorKind::kIo, error, "reading " + path);
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Status make_directories(const std::string& path, mode_t mode) {
  for (std::size_t at = 0; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), mode) == 0 || errno == EEXIST) continue;
    // Only the last level may fail: a parent that is read-only or forbidden may exist already.
    const int error = errno;
    struct stat info {};
    if (stat(part.c_str(), &info) == 0) continue;
    return fail_errno(ErrorKind::kIo, error, "making the directory " + part);
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "making the directory " + path);
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorKind::kIo, "making the directory {}: something else has this name", path);
  }
  return {};
}

Status sync_directory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "opening the directory " + directory);
  const int rc = fsync(fd);
  const int error = errno;
  close(fd);
  // Some filesystems cannot sync directories, and need not.
  if (rc != 0 && error != EINVAL) {
    return fail_errno(ErrorKind::kIo, error, "syncing the directory " + directory);
  }
  return {};
}

// --------------------------------------------------------- network filesystems

namespace {

struct KnownFilesystem {
  std::uint32_t magic;
  const char* name;
};
// The numbers are those of statfs(2) and of headers of the kernel and of vendors.
constexpr std::array kNetworkFilesystems = {
    KnownFilesystem{0x6969, "nfs"},          KnownFilesystem{0x517b, "smb"},
    KnownFilesystem{0xff534d42, "cifs"},     KnownFilesystem{0xfe534d42, "smb2"},
    KnownFilesystem{0x0bd00bd0, "lustre"},   KnownFilesystem{0x00c36400, "ceph"},
    KnownFilesystem{0x47504653, "gpfs"},     KnownFilesystem{0x01021997, "9p"},
    KnownFilesystem{0x5346414f, "afs"},      KnownFilesystem{0x6b414653, "afs"},
    KnownFilesystem{0x73757245, "coda"},     KnownFilesystem{0x564c, "ncp"},
    KnownFilesystem{0x20030528, "orangefs"}, KnownFilesystem{0x19830326, "beegfs"},
    KnownFilesystem{0xaad7aaea, "panfs"},    KnownFilesystem{0x01161970, "gfs2"},
    KnownFilesystem{0x7461636f, "ocfs2"},
};
constexpr std::uint32_t kFuse = 0x65735546;

// FUSE is used for local filesystems (ntfs-3g) and remote ones; the mount table says which. A mount
// point with a space is written with \040 there, and is then not found.
std::optional<std::string> fuse_kind(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  const Result<std::string> mounts = read_file("/proc/self/mounts");
  if (error || !mounts) return "fuse";
  std::string best_point;
  std::string kind = "fuse";
  for (std::size_t at = 0; at < mounts->size();) {
    const std::size_t end = std::min(mounts->find('\n', at), mounts->size());
    const std::string line = mounts->substr(at, end - at);
    at = end + 1;
    const std::size_t point = line.find(' ') + 1;
    const std::size_t type = line.find(' ', point) + 1;
    if (point == 0 || type == 0) continue;
    const std::string mount_point = line.substr(point, type - 1 - point);
    const bool holds =
        real == mount_point || mount_point == "/" || real.starts_with(mount_point + "/");
    if (!holds || mount_point.size() < best_point.size()) continue;
    best_point = mount_point;
    kind = line.substr(type, line.find(' ', type) - type);
  }
  const bool local = kind == "fuseblk" || kind == "fuse.ntfs-3g" || kind == "fuse.fuse-overlayfs";
  return local ? std::nullopt : std::optional(kind);
}

}  // namespace

Result<std::optional<std::string>> network_filesystem(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "asking which filesystem holds " + path);
  }
  const auto magic = static_cast<std::uint32_t>(info.f_type);
  if (magic == kFuse) return fuse_kind(path);
  for (const KnownFilesystem& known : kNetworkFilesystems) {
    if (known.magic == magic) return std::optional<std::string>(known.name);
  }
  return std::optional<std::string>();
}

Result<bool> on_network_filesystem(const std::string& path) {
  ANTDT_TRY(const std::optional<std::string> kind, network_filesystem(path));
  return kind.has_value();
}

// -------------------------------------------------------------------- TempDir

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/antdt-XXXXXX";
  ANTDT_CHECK(mkdtemp(path_.data()) != nullptr, "making a directory {}: errno {}", path_, errno);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::operator/(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

}  // namespace antdt
