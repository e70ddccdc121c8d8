#include "trainer/ps_link/cut_writer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/os/fs.h"
#include "core/wire/codec.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

// The child's messages: any number of kProgress, then one of the others with its data.
constexpr char kProgress = '.';
constexpr char kFiles = 'f';
constexpr char kError = 'e';

Result<CutWriter::Files> write_all(const Store& store, const std::vector<std::uint32_t>& slices,
                                   const std::string& directory,
                                   const std::function<void()>& progress) {
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  CutWriter::Files files;
  for (const std::uint32_t slice : slices) {
    ANTDT_TRY(files.emplace_back(), write_slice(directory, store, slice, progress));
  }
  return files;
}

}  // namespace

Status CutWriter::begin(const Store& store, const std::vector<std::uint32_t>& slices,
                        const std::string& directory, Done done) {
  if (child_.is_there()) {
    return fail(ErrorKind::kRefused, "the checkpoint before this one is still being written");
  }
  ANTDT_RETURN_IF_ERROR(child_.begin("write a checkpoint", [&](const ChildCopy::Tell& tell) {
    const auto progress = [&] { tell({&kProgress, 1}); };
    const auto files = write_all(store, slices, directory, progress);
    if (!files) return tell(kError + files.error().message);
    wire::PsSaved saved;
    saved.files = *files;
    tell(kFiles + wire::encode(saved));
  }));
  said_.clear();
  directory_ = directory;
  done_ = std::move(done);
  child_.watch(
      hang_after_, [this] { read_more(); }, [this] { hangs(); });
  return {};
}

void CutWriter::read_more() {
  std::array<char, 16384> buffer;
  const ssize_t got = ::read(child_.fd(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got > 0) {
    said_.append(buffer.data(), static_cast<std::size_t>(got));
  } else {
    finish();
  }
}

CutWriter::Done CutWriter::give_up() {
  if (!child_.is_there()) return nullptr;
  child_.end();
  said_.clear();
  return std::exchange(done_, nullptr);
}

void CutWriter::hangs() {
  child_.end();
  const Done done = std::exchange(done_, nullptr);
  done(fail(ErrorKind::kIo,
            "nothing more of it was written to {} for {:.0f} s ([failure] hang_after): does the "
            "filesystem answer?",
            directory_, to_seconds(hang_after_)));
}

void CutWriter::finish() {
  child_.end();
  std::string said = std::exchange(said_, {});
  said.erase(0, std::min(said.find_first_not_of(kProgress), said.size()));
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
