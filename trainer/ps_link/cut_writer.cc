#include "trainer/ps_link/cut_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/fs.h"
#include "core/wire/codec.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

constexpr char kFiles = 'f';
constexpr char kError = 'e';
constexpr int kNiceness = 10;  // training comes first

Result<CutWriter::Files> write_all(const Store& store, const std::vector<std::uint32_t>& slices,
                                   const std::string& directory) {
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  CutWriter::Files files;
  for (const std::uint32_t slice : slices) {
    ANTDT_TRY(files.emplace_back(), write_slice(directory, store, slice));
  }
  return files;
}

void say(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // who would have read it is gone
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void be_child(int fd, const Store& store, const std::vector<std::uint32_t>& slices,
                           const std::string& directory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, kNiceness);
  const auto files = write_all(store, slices, directory);
  if (files) {
    wire::PsSaved saved;
    saved.files = *files;
    say(fd, kFiles + wire::encode(saved));
  } else {
    say(fd, kError + files.error().message);
  }
  _exit(0);  // nothing of the server's is ended here
}

}  // namespace

CutWriter::~CutWriter() {
  if (child_ == 0) return;
  loop_.unwatch_fd(from_child_);
  close(from_child_);
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

Result<Duration> CutWriter::begin(const Store& store, const std::vector<std::uint32_t>& slices,
                                  const std::string& directory, Done done) {
  if (child_ != 0) {
    return fail(ErrorKind::kRefused, "the checkpoint before this one is still being written");
  }
  const MonoTime begun = SteadyClock().now();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(ErrorKind::kIo, errno, "a pipe");
  const pid_t child = fork();
  if (child == 0) be_child(ends[1], store, slices, directory);
  close(ends[1]);
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    return fail_errno(ErrorKind::kIo, error, "a child to write a checkpoint");
  }
  child_ = child;
  from_child_ = ends[0];
  said_.clear();
  done_ = std::move(done);
  loop_.watch_fd(from_child_, [this] { read_more(); });
  return SteadyClock().now() - begun;
}

void CutWriter::read_more() {
  std::array<char, 16384> buffer;
  const ssize_t got = ::read(from_child_, buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got > 0) {
    said_.append(buffer.data(), static_cast<std::size_t>(got));
  } else {
    finish();
  }
}

void CutWriter::finish() {
  loop_.unwatch_fd(from_child_);
  close(std::exchange(from_child_, -1));
  waitpid(std::exchange(child_, 0), nullptr, 0);
  const std::string said = std::exchange(said_, {});
  const Done done = std::exchange(done_, nullptr);
  if (said.empty()) {
    return done(fail(ErrorKind::kIo, "the process that wrote a checkpoint was ended"));
  }
  if (said.front() == kError) return done(fail(ErrorKind::kIo, "{}", said.substr(1)));
  auto saved = wire::decode<wire::PsSaved>(said.substr(1));
  if (!saved) return done(tl::unexpected<Error>(std::move(saved).error()));
  done(std::move(saved->files));
}

}  // namespace antdt::ps
