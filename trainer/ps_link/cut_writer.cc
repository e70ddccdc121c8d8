#include "trainer/ps_link/cut_writer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/os/fs.h"
#include "core/wire/codec.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/rows/slice_image.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::ps {
namespace {

// The child's messages: any number of kProgress with Bytes, then one of the others with its data.
constexpr char kProgress = 'p';
constexpr char kFiles = 'f';
constexpr char kError = 'e';

struct Bytes {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

// On a full disk they would take the room of the next checkpoint. The slices of other servers of
// this host stay.
void remove_slices(const std::vector<std::uint32_t>& slices, const std::string& directory) {
  for (const std::uint32_t slice : slices) {
    ::unlink((directory + "/" + slice_file_name(slice)).c_str());
  }
}

Result<CutWriter::Files> write_all(const Store& store, const std::vector<std::uint32_t>& slices,
                                   const std::string& directory,
                                   const std::function<void(std::uint64_t)>& progress) {
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  CutWriter::Files files;
  for (const std::uint32_t slice : slices) {
    auto file = write_slice(directory, store, slice, progress);
    if (!file) {
      remove_slices(slices, directory);
      return tl::unexpected<Error>(std::move(file).error());
    }
    files.push_back(std::move(*file));
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
    Bytes bytes;
    for (const std::uint32_t slice : slices) bytes.total += slice_bytes(store, slice);
    const auto progress = [&](std::uint64_t more) {
      bytes.done += more;
      std::string said(1, kProgress);
      said.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
      tell(said);
    };
    progress(0);
    const auto files = write_all(store, slices, directory, progress);
    if (!files) return tell(kError + files.error().message);
    wire::PsSaved saved;
    saved.files = *files;
    tell(kFiles + wire::encode(saved));
  }));
  said_.clear();
  progress_ = {directory, 0, 0};
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
    take_progress();
  } else {
    finish();
  }
}

void CutWriter::take_progress() {
  constexpr std::size_t kReport = 1 + sizeof(Bytes);
  std::size_t at = 0;
  for (; said_.size() - at >= kReport && said_[at] == kProgress; at += kReport) {
    Bytes bytes;
    std::memcpy(&bytes, said_.data() + at + 1, sizeof bytes);
    progress_.done_bytes = bytes.done;
    progress_.total_bytes = bytes.total;
  }
  said_.erase(0, at);
}

std::optional<CutProgress> CutWriter::progress() const {
  if (!child_.is_there()) return std::nullopt;
  return progress_;
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
            progress_.directory, to_seconds(hang_after_)));
}

void CutWriter::finish() {
  child_.end();
  const std::string said = std::exchange(said_, {});
  const Done done = std::exchange(done_, nullptr);
  if (said.empty() || said.front() == kProgress) {
    return done(fail(ErrorKind::kIo, "the process that wrote a checkpoint was ended"));
  }
  if (said.front() == kError) return done(fail(ErrorKind::kIo, "{}", said.substr(1)));
  auto saved = wire::decode<wire::PsSaved>(said.substr(1));
  if (!saved) return done(tl::unexpected<Error>(std::move(saved).error()));
  done(std::move(saved->files));
}

}  // namespace antdt::ps
