#include "trainer/ps_link/cut_writer.h"

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

Result<CutWriter::Files> write_all(const Store& store, const std::vector<std::uint32_t>& slices,
                                   const std::string& directory) {
  ANTDT_RETURN_IF_ERROR(make_directories(directory, 0700));
  CutWriter::Files files;
  for (const std::uint32_t slice : slices) {
    ANTDT_TRY(files.emplace_back(), write_slice(directory, store, slice));
  }
  return files;
}

}  // namespace

CutWriter::~CutWriter() {
  if (child_.is_there()) loop_.unwatch_fd(child_.fd());
}

Result<Duration> CutWriter::begin(const Store& store, const std::vector<std::uint32_t>& slices,
                                  const std::string& directory, Done done) {
  if (child_.is_there()) {
    return fail(ErrorKind::kRefused, "the checkpoint before this one is still being written");
  }
  const MonoTime begun = SteadyClock().now();
  ANTDT_RETURN_IF_ERROR(child_.begin("write a checkpoint", [&](const ChildCopy::Tell& tell) {
    const auto files = write_all(store, slices, directory);
    if (!files) return tell(kError + files.error().message);
    wire::PsSaved saved;
    saved.files = *files;
    tell(kFiles + wire::encode(saved));
  }));
  said_.clear();
  done_ = std::move(done);
  loop_.watch_fd(child_.fd(), [this] { read_more(); });
  return SteadyClock().now() - begun;
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

void CutWriter::finish() {
  loop_.unwatch_fd(child_.fd());
  child_.end();
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
