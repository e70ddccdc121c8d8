#include "antdtd/inspect/disk_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <random>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt::antdtd {
namespace {

constexpr std::string_view kDoctorProbe = ".antdt-doctor-";
constexpr std::size_t kMostProbes = 16;
constexpr std::size_t kLongestLink = 255;
constexpr std::size_t kSmall = 4096;
constexpr int kSyncs = 9;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kPieces = 32;
// A slow disk gets fewer of each.
constexpr Duration kLongest = std::chrono::seconds(2);

std::string nearest_existing(const std::string& directory) {
  std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  std::error_code error;
  while (!std::filesystem::is_directory(path, error) && path.has_parent_path() &&
         path != path.parent_path()) {
    path = path.parent_path();
  }
  return path.string();
}

// A file without a name, which is gone with its descriptor whatever happens. Where the filesystem
// has none (NFS), a file with a name that is removed at once.
Result<OwnedFd> scratch_file(const std::string& directory) {
  OwnedFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_open()) return file;
  const bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
  if (!unknown) return fail_errno(ErrorKind::kIo, errno, "writing in " + directory);
  const std::string path = fmt::format("{}/{}{}", directory, kDoctorProbe, new_ulid());
  file = OwnedFd(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail_errno(ErrorKind::kIo, errno, "writing " + path);
  ::unlink(path.c_str());
  return file;
}

// Writes `bytes` so many times, one behind the other, and syncs them. The time that this took.
Result<Duration> write_and_sync(int file, const std::vector<char>& bytes, std::size_t pieces) {
  const SteadyClock clock;
  const MonoTime begin = clock.now();
  for (std::size_t i = 0; i < pieces; ++i) {
    const auto put =
        ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(i * bytes.size()));
    if (put != static_cast<ssize_t>(bytes.size())) {
      return fail_errno(ErrorKind::kIo, put < 0 ? errno : ENOSPC, "writing");
    }
  }
  if (::fsync(file) != 0) return fail_errno(ErrorKind::kIo, errno, "syncing");
  return clock.now() - begin;
}

std::uint32_t in_us(Duration time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(us, 1, UINT32_MAX));
}

Status measure(const std::string& directory, wire::FileDiskTold& told) {
  ANTDT_TRY(const OwnedFd file, scratch_file(directory));
  const std::vector<char> small(kSmall, 'a');
  std::vector<Duration> times;
  Duration sum{};
  while (times.size() < kSyncs && sum < kLongest) {
    ANTDT_TRY(const Duration took, write_and_sync(file.get(), small, 1));
    times.push_back(took);
    sum += took;
  }
  std::ranges::sort(times);
  told.sync_us = in_us(times[times.size() / 2]);
  told.worst_sync_us = in_us(times.back());
  // Noise rather than zeros, which a filesystem that compresses would write too fast.
  std::vector<char> piece(kPiece);
  std::mt19937_64 noise;
  for (char& byte : piece) byte = static_cast<char>(noise());
  std::size_t written = 0;
  Duration took{};
  for (std::size_t pieces = 1; pieces <= kPieces && took < kLongest / 4; pieces *= 4) {
    ANTDT_TRY(took, write_and_sync(file.get(), piece, pieces));
    written = pieces * kPiece;
  }
  told.bytes_per_second =
      static_cast<std::uint64_t>(static_cast<double>(written) / std::max(to_seconds(took), 1e-6));
  return {};
}

}  // namespace

// Only what is still the own: another host that shares the directory may have made the link.
DiskFacts::~DiskFacts() {
  for (const auto& [path, identity] : probes_) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(path, error);
    if (!error && target == identity) ::unlink(path.c_str());
  }
}

// The identity is the target of a symbolic link, which is never followed: it is made whole or not
// at all, so nobody reads half of an identity.
Result<std::string> DiskFacts::identity_in(const std::string& directory, const std::string& probe) {
  if (probes_.size() >= kMostProbes) {
    return fail(ErrorKind::kUsage, "more than {} probes were asked for", kMostProbes);
  }
  const std::string path = directory + "/" + probe;
  const std::string own = new_ulid();
  if (::symlink(own.c_str(), path.c_str()) == 0) {
    probes_[path] = own;
  } else if (errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making " + path);
  }
  std::string identity(kLongestLink, '\0');
  const ssize_t size = ::readlink(path.c_str(), identity.data(), identity.size());
  if (size < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  identity.resize(static_cast<std::size_t>(size));
  return identity;
}

Result<wire::FileDiskTold> DiskFacts::look(const std::string& directory,
                                           const wire::FileDisk& request) {
  if (!directory.starts_with('/')) {
    return fail(ErrorKind::kUsage, "the directory '{}' is not absolute", directory);
  }
  const bool named = request.probe.starts_with(kDoctorProbe) && request.probe.size() < 100 &&
                     request.probe.find('/') == std::string::npos &&
                     request.probe.find('\0') == std::string::npos;
  if (!request.probe.empty() && !named) {
    return fail(ErrorKind::kUsage, "'{}' is no name of a probe", request.probe);
  }
  wire::FileDiskTold told;
  told.directory = nearest_existing(directory);
  struct statvfs found {};
  if (::statvfs(told.directory.c_str(), &found) == 0) {
    told.free_bytes = static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
  }
  if (const auto network = network_filesystem(told.directory); network && *network) {
    told.filesystem = **network;
  }
  if (!request.probe.empty()) {
    const auto identity = identity_in(told.directory, request.probe);
    if (!identity) {
      told.error = identity.error().message;
      return told;
    }
    told.identity = *identity;
  }
  const auto scratch = scratch_file(told.directory);
  const Status tried = !scratch          ? Status(tl::unexpected<Error>(scratch.error()))
                       : request.measure ? measure(told.directory, told)
                                         : Status();
  if (!tried) told.error = tried.error().message;
  return told;
}

}  // namespace antdt::antdtd
