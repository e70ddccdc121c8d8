#include "jobd/disk/checkpoint_check.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>

#include "core/os/directory.h"
#include "ctl/checkpoints/checkpoint_names.h"

namespace antdt::jobd {

Result<std::vector<std::string>> checkpoint_names(const std::string& checkpoints) {
  ANTDT_TRY(const std::vector<std::string> present, names_in(checkpoints));
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::string>> found;
  for (const std::string& name : present) {
    if (const auto order = ctl::copies::order_of(name)) found.push_back({*order, name});
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (auto& [order, name] : found) names.push_back(std::move(name));
  return names;
}

Result<wire::CheckpointFile> sum_file(const std::string& directory, const std::string& name,
                                      const std::function<void()>& progress) {
  const std::string path = directory + "/" + name;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kIo, errno, path + " cannot be read");
  auto sum = sum_file(fd, name, progress);
  ::close(fd);
  return sum;
}

Result<wire::CheckpointFile> sum_file(int fd, const std::string& name,
                                      const std::function<void()>& progress) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  wire::CheckpointFile file{name, 0, ""};
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(file.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, name + " cannot be read");
    if (got == 0) break;
    if (progress) progress();
    XXH3_64bits_update(&state, buffer.data(), static_cast<std::size_t>(got));
    file.bytes += static_cast<std::uint64_t>(got);
  }
  file.xxh3 = fmt::format("{:016x}", XXH3_64bits_digest(&state));
  return file;
}

Status check_sum(const wire::CheckpointFile& said, const wire::CheckpointFile& found) {
  if (found.bytes != said.bytes) {
    return fail(ErrorKind::kCorrupt, "{} has {} bytes, not {}", said.name, found.bytes, said.bytes);
  }
  if (found.xxh3 == said.xxh3) return {};
  return fail(ErrorKind::kCorrupt, "{} does not have the checksum of MANIFEST.json", said.name);
}

Result<Manifest> check_names(const std::string& directory) {
  ANTDT_TRY(const std::vector<std::string> present, names_in(directory));
  const auto expect = [&](const std::string& name) -> Status {
    if (std::ranges::binary_search(present, name)) return {};
    return fail(ErrorKind::kCorrupt, "{} is missing", name);
  };
  ANTDT_RETURN_IF_ERROR(expect("MANIFEST.json"));
  ANTDT_TRY(Manifest manifest, read_checkpoint_manifest(directory));
  for (const wire::CheckpointFile& said : manifest.files) {
    ANTDT_RETURN_IF_ERROR(expect(said.name));
  }
  return manifest;
}

Result<Manifest> check_checkpoint(const std::string& directory,
                                  const std::function<void()>& progress) {
  ANTDT_TRY(Manifest manifest, check_names(directory));
  for (const wire::CheckpointFile& said : manifest.files) {
    ANTDT_TRY(const wire::CheckpointFile found, sum_file(directory, said.name, progress));
    ANTDT_RETURN_IF_ERROR(check_sum(said, found));
  }
  return manifest;
}

}  // namespace antdt::jobd
