#include "antdtd/shim/shim_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "core/os/fs.h"

namespace antdt::antdtd {
namespace {

std::string dropped_notice(std::uint64_t bytes) {
  return fmt::format("[antdt: {} bytes of output dropped]\n", bytes);
}

// The file and its rotation. Used by the writing thread alone.
class RotatingFile {
 public:
  RotatingFile(std::string path, std::uint64_t max_bytes)
      : path_(std::move(path)), half_(std::max<std::uint64_t>(max_bytes / 2, 1)) {}
  ~RotatingFile() {
    if (fd_ >= 0) close(fd_);
  }
  RotatingFile(const RotatingFile&) = delete;
  RotatingFile& operator=(const RotatingFile&) = delete;

  // Returns how many of the bytes could not be written.
  std::uint64_t write(std::string_view bytes) {
    while (!bytes.empty()) {
      if (fd_ < 0 && !open()) return bytes.size();
      if (size_ >= half_) {
        rotate();
        continue;
      }
      const std::size_t wanted = fitting(bytes);
      if (wanted == 0) {
        rotate();
        continue;
      }
      const ssize_t written = ::write(fd_, bytes.data(), wanted);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return bytes.size();
      size_ += static_cast<std::uint64_t>(written);
      mid_line_ = bytes[static_cast<std::size_t>(written) - 1] != '\n';
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
  }

 private:
  bool open() {
    if (!make_directories(path_.substr(0, path_.find_last_of('/')), 0700)) return false;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0) return false;
    struct stat info {};
    size_ = fstat(fd_, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
    return true;
  }
  void rotate() {
    close(std::exchange(fd_, -1));
    std::rename(path_.c_str(), (path_ + ".1").c_str());
  }
  // How much of `bytes` goes into this file: whole lines if possible; 0 if the next line fits only
  // into a new file. Output may arrive in the middle of a line; near the end of the file, such a
  // beginning goes into the next file.
  [[nodiscard]] std::size_t fitting(std::string_view bytes) const {
    constexpr std::uint64_t kRestOfALine = 4096;
    const std::uint64_t room = half_ - size_;
    const std::uint64_t reserve =
        bytes.ends_with('\n') ? 0 : std::min<std::uint64_t>(half_ / 8, kRestOfALine);
    if (bytes.size() + reserve <= room) return bytes.size();
    const std::size_t newline = bytes.substr(0, room).find_last_of('\n');
    if (newline != std::string_view::npos) return newline + 1;
    const bool begins_a_line = size_ > 0 && !mid_line_;
    return begins_a_line ? 0 : std::min<std::size_t>(bytes.size(), room);
  }

  std::string path_;
  std::uint64_t half_;
  std::uint64_t size_ = 0;
  bool mid_line_ = false;  // whether the last byte written was inside a line
  int fd_ = -1;
};

}  // namespace

// Shared with the writing thread, which may outlive the ShimLog on a disk that does not answer.
struct ShimLog::Shared {
  Shared(std::string path, std::uint64_t max_bytes, std::size_t buffer_bytes)
      : file(std::move(path), max_bytes), limit(buffer_bytes) {}

  void write_until_finished();

  RotatingFile file;
  const std::size_t limit;
  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;        // in order, notices included
  std::uint64_t dropped = 0;  // bytes dropped after the end of `pending`
  // kOpen ──finish(), or the ShimLog goes──> kFinishing ──all is written──> kFinished
  enum class State : std::uint8_t { kOpen, kFinishing, kFinished };
  State state = State::kOpen;
  // From: kOpen. To: kFinishing.
  void ask_to_finish();
};

ShimLog::ShimLog(std::string path, std::uint64_t max_bytes, std::size_t buffer_bytes)
    : shared_(std::make_shared<Shared>(
          std::move(path), max_bytes == 0 ? kDefaultLogBytes : max_bytes, buffer_bytes)) {
  std::thread([shared = shared_] { shared->write_until_finished(); }).detach();
}

ShimLog::~ShimLog() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ask_to_finish();
}

void ShimLog::Shared::ask_to_finish() {
  if (state == State::kOpen) state = State::kFinishing;
  changed.notify_all();
}

void ShimLog::append(std::string_view bytes) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->pending.size() + bytes.size() > shared_->limit) {
    shared_->dropped += bytes.size();
    return;
  }
  if (shared_->dropped > 0) {
    shared_->pending += dropped_notice(std::exchange(shared_->dropped, 0));
  }
  shared_->pending += bytes;
  shared_->changed.notify_all();
}

bool ShimLog::finish(Duration wait) {
  std::unique_lock lock(shared_->mutex);
  shared_->ask_to_finish();
  return shared_->changed.wait_for(lock, wait,
                                   [this] { return shared_->state == Shared::State::kFinished; });
}

void ShimLog::Shared::write_until_finished() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return state != State::kOpen || !pending.empty(); });
    if (pending.empty() && dropped > 0) pending = dropped_notice(std::exchange(dropped, 0));
    if (pending.empty()) break;
    const std::string batch = std::exchange(pending, {});
    lock.unlock();
    const std::uint64_t refused = file.write(batch);
    lock.lock();
    if (refused > 0) {
      if (state != State::kOpen && pending.empty()) break;  // there is nowhere left to report it
      // Reported with the next output that the disk accepts.
      dropped += refused;
    }
  }
  state = State::kFinished;  // from kFinishing
  changed.notify_all();
}

}  // namespace antdt::antdtd
