#include "core/os/rotating_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/os/fs.h"

namespace antdt {

RotatingFile::RotatingFile(std::string path, std::uint64_t most_bytes)
    : path_(std::move(path)), most_bytes_(most_bytes) {}

Status RotatingFile::open() {
  OwnedFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) {
    return fail_errno(ErrorKind::kIo, errno, path_ + " cannot be opened for appending");
  }
  file_ = std::move(file);
  bytes_ = static_cast<std::uint64_t>(about.st_size);
  return {};
}

Status RotatingFile::rotate() {
  file_.close();
  if (::rename(path_.c_str(), (path_ + ".1").c_str()) != 0 && errno != ENOENT) {
    return fail_errno(ErrorKind::kIo, errno, fmt::format("rename {} to {}.1", path_, path_));
  }
  return open();
}

Status RotatingFile::append(std::string_view text) {
  if (!file_.is_open()) ANTDT_RETURN_IF_ERROR(open());
  if (bytes_ > 0 && bytes_ + text.size() > most_bytes_ / 2) ANTDT_RETURN_IF_ERROR(rotate());
  while (!text.empty()) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(ErrorKind::kIo, errno, "write " + path_);
    text.remove_prefix(static_cast<std::size_t>(written));
    bytes_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

std::string read_rotated(const std::string& path) {
  return read_file(path + ".1").value_or("") + read_file(path).value_or("");
}

}  // namespace antdt
