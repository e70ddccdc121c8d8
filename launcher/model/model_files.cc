#include "launcher/model/model_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace antdt::cli {

Result<CheckpointFiles> CheckpointFiles::open(const std::string& directory,
                                              const std::vector<std::string>& names) {
  CheckpointFiles files(directory);
  for (const std::string& name : names) ANTDT_RETURN_IF_ERROR(files.add(name));
  return files;
}

CheckpointFiles::~CheckpointFiles() {
  for (const File& file : files_) ::close(file.fd);
}

Status CheckpointFiles::add(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  files_.push_back({name, fd, 0});
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  files_.back().bytes = static_cast<std::uint64_t>(info.st_size);
  return {};
}

std::optional<std::uint32_t> CheckpointFiles::find(std::string_view name) const {
  const auto found = std::ranges::find(files_, name, &File::name);
  if (found == files_.end()) return {};
  return static_cast<std::uint32_t>(found - files_.begin());
}

std::string CheckpointFiles::path(std::uint32_t file) const {
  return directory_ + "/" + files_[file].name;
}

Status CheckpointFiles::read(std::uint32_t file, std::uint64_t first, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(files_[file].fd, to.data(), to.size(), static_cast<off_t>(first));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path(file));
    if (got == 0) return fail(ErrorKind::kCorrupt, "{} is cut short", path(file));
    first += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<std::string> CheckpointFiles::read_all(std::uint32_t file) const {
  std::string text(bytes(file), '\0');
  ANTDT_RETURN_IF_ERROR(read(file, 0, text));
  return text;
}

}  // namespace antdt::cli
