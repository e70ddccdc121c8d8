#include "antdtd/shim/claim_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace antdt::antdtd {
namespace {

constexpr mode_t kForEveryUser = 0666;

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// What another user put there in place of an empty file is not followed and not waited for.
Result<OwnedFd> open_regular(const std::string& path, int flags) {
  OwnedFd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kForEveryUser));
  if (!fd.is_open()) return fail_errno(ErrorKind::kIo, errno, "opening " + path);
  struct stat found {};
  if (::fstat(fd.get(), &found) == 0 && S_ISREG(found.st_mode)) return fd;
  return fail(ErrorKind::kIo, "{} is not a regular file", path);
}

// A file that exists is opened without O_CREAT, with which the kernel may refuse another user's
// file in a directory of all users (sysctl fs.protected_regular).
Result<OwnedFd> open_or_make(const std::string& path) {
  auto opened = open_regular(path, O_RDWR);
  if (opened) return opened;
  auto made = open_regular(path, O_RDWR | O_CREAT | O_EXCL);
  if (!made) return open_regular(path, O_RDWR);  // made by another meanwhile, or the reason
  ::fchmod(made->get(), kForEveryUser);          // whatever the umask is
  return made;
}

Status lock(const OwnedFd& fd, short type, const std::string& path) {
  struct flock wanted = whole_file(type);
  if (::fcntl(fd.get(), F_OFD_SETLK, &wanted) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) {
    return fail(ErrorKind::kRefused,
                "another process holds the lock of {}; as root, 'fuser -v {}' names it", path,
                path);
  }
  return fail_errno(ErrorKind::kIo, errno, "locking " + path);
}

}  // namespace

// A lock that nobody else may have proves that nobody has the claim; the kernel then turns it into
// one that others may join, in one step.
Result<ClaimFile> ClaimFile::take(const std::string& path) {
  ANTDT_TRY(OwnedFd fd, open_or_make(path));
  ANTDT_RETURN_IF_ERROR(lock(fd, F_WRLCK, path));
  ANTDT_RETURN_IF_ERROR(lock(fd, F_RDLCK, path));
  return ClaimFile(std::move(fd));
}

Result<ClaimFile> ClaimFile::join(const std::string& path) {
  ANTDT_TRY(OwnedFd fd, open_regular(path, O_RDONLY));
  ANTDT_RETURN_IF_ERROR(lock(fd, F_RDLCK, path));
  return ClaimFile(std::move(fd));
}

bool ClaimFile::is_taken(const std::string& path) {
  const auto fd = open_regular(path, O_RDONLY);
  struct flock found = whole_file(F_WRLCK);
  return fd && ::fcntl(fd->get(), F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

}  // namespace antdt::antdtd
