#include "trainer/data/index/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "trainer/data/index/lost_files.h"

namespace antdt::data {
namespace {

std::int64_t in_ns(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(ErrorKind::kUsage, errno, "cannot open " + path);
  MappedFile file;
  file.path_ = path;
  struct stat info {};
  int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(info.st_mode)) error = EISDIR;
  if (error == 0 && info.st_size > 0) {
    void* mapped =
        ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      error = errno;
    } else {
      file.data_ = static_cast<const char*>(mapped);
      file.size_ = static_cast<std::size_t>(info.st_size);
      file.mapping_ = list_mapping(path, mapped, file.size_);
    }
  }
  ::close(fd);
  if (error != 0) return fail_errno(ErrorKind::kUsage, error, "cannot read " + path);
  file.mtime_ns_ = in_ns(info.st_mtim);
  file.ctime_ns_ = in_ns(info.st_ctim);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mtime_ns_, other.mtime_ns_);
  std::swap(ctime_ns_, other.ctime_ns_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  drop_mapping(mapping_);
  ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::expect_sequential() const {
  if (data_ != nullptr) ::madvise(const_cast<char*>(data_), size_, MADV_SEQUENTIAL);
}

Result<MappedFile> open_text_file(const std::string& path) {
  ANTDT_TRY(MappedFile file, MappedFile::open(path));
  if (file.bytes().empty()) {
    return fail(ErrorKind::kUsage, "{} is empty: take it out of [data], or put the data there",
                path);
  }
  return file;
}

Result<MappedFile> open_unpacked_file(const std::string& path) {
  ANTDT_TRY(MappedFile file, open_text_file(path));
  const bool gzip = file.bytes().starts_with("\x1f\x8b");
  if (gzip || file.bytes().starts_with("\x28\xb5\x2f\xfd")) {
    return fail(ErrorKind::kUsage,
                "{} is packed; in this format records are read from the middle of files, so unpack "
                "it ('{} {}') and name the unpacked file",
                path, gzip ? "gunzip -k" : "zstd -d", path);
  }
  return file;
}

}  // namespace antdt::data
