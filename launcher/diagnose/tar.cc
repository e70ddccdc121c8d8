#include "launcher/diagnose/tar.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace antdt::launcher {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kLongestName = 100;

// Positions and lengths of the header's fields, from POSIX.1-1988 (ustar).
class Header {
 public:
  Header() { bytes_.fill('\0'); }
  void put(std::size_t at, std::string_view text) { std::ranges::copy(text, bytes_.begin() + at); }
  // Octal digits, ended by a NUL, in `width` bytes.
  void number(std::size_t at, std::size_t width, std::uint64_t value) {
    put(at, fmt::format("{:0{}o}", value, width - 1));
  }
  [[nodiscard]] std::string finish() {
    put(148, "        ");  // the checksum is counted as blanks
    const auto sum = std::accumulate(bytes_.begin(), bytes_.end(), 0U, [](unsigned all, char c) {
      return all + static_cast<unsigned char>(c);
    });
    put(148, fmt::format("{:06o}", sum));
    bytes_[154] = '\0';
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  std::array<char, kBlock> bytes_{};
};

std::string header_of(const std::string& name, std::size_t size, std::uint64_t mtime) {
  Header header;
  header.put(0, name);
  header.number(100, 8, 0600);
  header.number(108, 8, 0);
  header.number(116, 8, 0);
  header.number(124, 12, size);
  header.number(136, 12, mtime);
  header.put(156, "0");
  header.put(257, "ustar");
  header.put(263, "00");
  return header.finish();
}

}  // namespace

Result<std::string> tar_of(const std::string& top, const std::vector<ArchivedFile>& files,
                           std::uint64_t mtime) {
  std::string archive;
  for (const ArchivedFile& file : files) {
    const std::string name = top + "/" + file.name;
    if (name.size() > kLongestName) {
      return fail(ErrorKind::kInternal, "'{}' is too long a name for an archive", name);
    }
    archive += header_of(name, file.content.size(), mtime);
    archive += file.content;
    archive.resize((archive.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  archive.append(2 * kBlock, '\0');
  return archive;
}

}  // namespace antdt::launcher
