#include "trainer/data/index/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace antdt::data {

Result<Spool> Spool::beside(const std::string& path) {
  // Whoever is killed before the file has no name any more leaves what looks like an unfinished
  // `path`, and is removed like one.
  std::string name = path + ".XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "making a file beside " + path);
  ::unlink(name.c_str());
  std::FILE* file = ::fdopen(fd, "w+");
  if (file == nullptr) {
    const int error = errno;
    ::close(fd);
    return fail_errno(ErrorKind::kIo, error, "opening a file beside " + path);
  }
  return Spool(path, file);
}

void Spool::write(std::string_view bytes) {
  if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    error_ = errno;
  }
}

Status Spool::rewind() {
  if (error_ == 0 && std::fseek(file_.get(), 0, SEEK_SET) != 0) error_ = errno;
  if (error_ != 0) return fail_errno(ErrorKind::kIo, error_, "writing beside " + path_);
  return {};
}

Status Spool::read(std::span<char> out) {
  errno = 0;
  if (std::fread(out.data(), 1, out.size(), file_.get()) == out.size()) return {};
  return fail_errno(ErrorKind::kIo, errno == 0 ? EIO : errno, "reading what is beside " + path_);
}

}  // namespace antdt::data
