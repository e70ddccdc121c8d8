#include "core/running_sum.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace antdt {

struct RunningSum::State {
  State() : xxh3(XXH3_createState()) { XXH3_64bits_reset(xxh3); }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh3;
};

RunningSum::RunningSum() : state_(std::make_unique<State>()) {}
RunningSum::RunningSum(RunningSum&&) noexcept = default;
RunningSum& RunningSum::operator=(RunningSum&&) noexcept = default;
RunningSum::~RunningSum() = default;

void RunningSum::add(std::string_view bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

Status RunningSum::add_file(int fd, std::uint64_t limit) {
  std::vector<char> buffer(1 << 20);
  std::uint64_t at = 0;
  while (at < limit) {
    const std::size_t most = std::min<std::uint64_t>(buffer.size(), limit - at);
    const ssize_t got = ::pread(fd, buffer.data(), most, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, "reading a file to sum it");
    if (got == 0) break;
    add({buffer.data(), static_cast<std::size_t>(got)});
    at += static_cast<std::uint64_t>(got);
  }
  return {};
}

std::string RunningSum::hex() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->xxh3));
}

}  // namespace antdt
