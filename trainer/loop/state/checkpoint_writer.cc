#include "trainer/loop/state/checkpoint_writer.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/os/forks/huge_pages.h"
#include "core/os/process.h"

namespace antdt::trainer {
namespace {

// How often the thread checks whether to give up.
constexpr int kLookMs = 50;
// How long to wait for a child that was killed.
constexpr int kMomentMs = 100;

std::uint64_t size_of(const StateFile& file) {
  if (file.parts.empty()) return file.text.size();
  std::uint64_t bytes = 0;
  for (const auto& part : file.parts) bytes += part.size();
  return bytes;
}

std::string amount(std::uint64_t done, std::uint64_t total) {
  const bool large = total >= 1'000'000'000;
  const double unit = large ? 1e9 : 1e6;
  return fmt::format("{:.1f} of {:.1f} {}", static_cast<double>(done) / unit,
                     static_cast<double>(total) / unit, large ? "GB" : "MB");
}

}  // namespace

std::string CheckpointWriter::directory_of(const wire::CheckpointWritten& about) const {
  const Member self = client_.member();
  return fmt::format("{}/checkpoints/.tmp-{}-g{}-{}.{}", client_.run_dir(), about.step,
                     client_.generation(), self.worker, self.attempt);
}

std::string CheckpointWriter::directory_apart(const wire::CheckpointWritten& about) const {
  return fmt::format("{}-{}", directory_of(about), about.number);
}

void CheckpointWriter::begin(const Engine& engine, wire::CheckpointWritten about, Done done) {
  if (thread_.joinable()) thread_.join();
  if (about.directory.empty()) about.directory = directory_of(about);
  if (!killed_one_ended()) {
    about.error = fmt::format(
        "process {}, which wrote a checkpoint before, was killed and does not end: it waits for a "
        "disk that does not answer",
        killed_.load());
    return done(std::move(about));
  }
  Writing writing{std::move(about), engine.state_files(about.step), 0, {}, std::move(done)};
  for (const StateFile& file : writing.files) {
    writing.about.files.push_back({file.name, size_of(file), ""});
    writing.total_bytes += size_of(file);
  }
  auto child = write_in_child(writing.about.directory, writing.files);
  if (!child) {
    writing.about.error = child.error().message;
    writing.about.files.clear();
    return writing.done(std::move(writing.about));
  }
  writing.child = std::move(*child);
  given_up_ = false;
  busy_ = true;
  thread_ = std::thread([this, w = std::move(writing)]() mutable { watch(std::move(w)); });
}

void CheckpointWriter::give_up(const std::string& reason) {
  if (busy_) {
    reason_ = reason;
    given_up_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::watch(Writing writing) {
  say(writing, 0);
  const Status status = follow(writing);
  if (!status) {
    writing.about.error = status.error().message;
    writing.about.files.clear();
  }
  reap(writing.child.pid);
  client_.set_io({});
  writing.done(std::move(writing.about));
  busy_ = false;
}

Status CheckpointWriter::follow(Writing& writing) {
  std::uint64_t done_bytes = 0;
  Duration waited{};
  for (bool over = false; !over;) {
    if (given_up_) return fail(ErrorKind::kAborted, "it was given up: {}", reason_);
    pollfd ready{writing.child.reports.get(), POLLIN, 0};
    const int found = ::poll(&ready, 1, kLookMs);
    if (found < 0 && errno != EINTR) return fail_errno(ErrorKind::kIo, errno, "poll");
    if (found <= 0) {
      waited += std::chrono::milliseconds(kLookMs);
      if (waited >= patience_) return tl::unexpected(stands_still(writing, done_bytes));
      continue;
    }
    ChildReport report;
    const ssize_t got = ::read(writing.child.reports.get(), &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof report) {
      return fail(ErrorKind::kIo, "the process that wrote it was ended at {}",
                  amount(done_bytes, writing.total_bytes));
    }
    waited = {};
    ANTDT_RETURN_IF_ERROR(take(report, writing, over));
    if (report.kind != ChildReport::kWritten) continue;
    done_bytes = report.value;
    say(writing, done_bytes);
  }
  return {};
}

Status CheckpointWriter::take(const ChildReport& report, Writing& writing, bool& over) {
  std::vector<wire::CheckpointFile>& files = writing.about.files;
  if (report.kind == ChildReport::kFile && report.file < files.size()) {
    files[report.file].xxh3 = fmt::format("{:016x}", report.value);
  }
  over = report.kind == ChildReport::kDone;
  if (report.kind != ChildReport::kFailed) return {};
  const std::string path = report.file < files.size()
                               ? writing.about.directory + "/" + files[report.file].name
                               : writing.about.directory;
  return fail_errno(ErrorKind::kIo, static_cast<int>(report.value), path + " cannot be written");
}

Error CheckpointWriter::stands_still(const Writing& writing, std::uint64_t done_bytes) const {
  return {ErrorKind::kIo,
          fmt::format("writing the checkpoint {} stands still at {} for {:.0f} s ([failure] "
                      "hang_after): look at the disk of {}",
                      writing.about.directory, amount(done_bytes, writing.total_bytes),
                      to_seconds(patience_), client_.host())};
}

void CheckpointWriter::say(const Writing& writing, std::uint64_t done_bytes) {
  client_.set_io(
      {"writing the checkpoint", writing.about.directory, done_bytes, writing.total_bytes});
}

// The child has ended, or must end.
void CheckpointWriter::reap(pid_t child) {
  ::kill(child, SIGKILL);
  killed_ = child;
  if (const auto pidfd = open_pidfd(child)) {
    const OwnedFd ended(*pidfd);
    pollfd waiting{ended.get(), POLLIN, 0};
    ::poll(&waiting, 1, kMomentMs);
  }
  static_cast<void>(killed_one_ended());
}

bool CheckpointWriter::killed_one_ended() {
  if (killed_ == 0) return true;
  if (::waitpid(killed_, nullptr, WNOHANG) == 0) return false;
  killed_ = 0;
  HugePages::of_process().mend();
  return true;
}

}  // namespace antdt::trainer
