#include "trainer/ps_link/slice_file.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/checkpoint/checkpoint_file.h"
#include "core/checkpoint/checkpoint_reader.h"
#include "core/clock.h"
#include "core/os/fs.h"
#include "core/sync_pace.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::ps {
namespace {

// The file size of each of these slices.
Result<std::vector<std::uint64_t>> sizes_of(const std::string& directory,
                                            const std::vector<std::uint32_t>& slices) {
  ANTDT_TRY(const CheckpointManifest manifest, read_checkpoint_manifest(directory));
  std::vector<std::uint64_t> sizes;
  for (const std::uint32_t slice : slices) {
    const std::string name = slice_file_name(slice);
    const auto found = std::ranges::find(manifest.files, name, &wire::CheckpointFile::name);
    if (found == manifest.files.end()) {
      return fail(ErrorKind::kCorrupt, "{}/MANIFEST.json names no file {}", directory, name);
    }
    sizes.push_back(found->bytes);
  }
  return sizes;
}

}  // namespace

std::string slice_file_name(std::uint32_t slice) { return fmt::format("slice-{:02}.rows", slice); }

Result<wire::CheckpointFile> write_slice(const std::string& directory, const Store& store,
                                         std::uint32_t slice,
                                         const std::function<void(std::uint64_t)>& progress) {
  ANTDT_TRY(auto writer, CheckpointFileWriter::create(directory, slice_file_name(slice)));
  const SteadyClock clock;
  SyncPace pace;
  MonoTime since = clock.now();
  std::size_t unsynced = 0;
  encode_slice(store, slice, [&](std::string_view bytes) {
    writer.write(bytes);
    unsynced += bytes.size();
    if (unsynced < pace.part()) return;
    writer.sync();
    const MonoTime now = clock.now();
    pace.took(now - std::exchange(since, now));
    progress(std::exchange(unsynced, 0));
  });
  auto file = writer.finish();
  progress(unsynced);
  return file;
}

Status read_slices(const std::string& directory, const std::vector<std::uint32_t>& slices,
                   Store& store, const ReadProgress& progress) {
  ANTDT_TRY(const std::vector<std::uint64_t> sizes, sizes_of(directory, slices));
  const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  std::uint64_t done = 0;
  ANTDT_TRY(CheckpointReader files, CheckpointReader::open(directory, [&](std::uint64_t bytes) {
              progress(done += bytes, total);
              return true;
            }));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::string name = slice_file_name(slices[i]);
    std::string bytes(sizes[i], '\0');
    const std::span<std::byte> whole = std::as_writable_bytes(std::span(bytes));
    ANTDT_RETURN_IF_ERROR(files.into(name, {&whole, 1}));
    Status status = decode_slice(store, slices[i], bytes);
    if (!status) {
      status.error().message = fmt::format("{}/{}: {}", directory, name, status.error().message);
      return status;
    }
  }
  return {};
}

Status read_slice(const std::string& directory, Store& store, std::uint32_t slice) {
  const std::string path = directory + "/" + slice_file_name(slice);
  ANTDT_TRY(const std::string bytes, read_file(path));
  Status status = decode_slice(store, slice, bytes);
  if (!status) status.error().message = path + ": " + status.error().message;
  return status;
}

}  // namespace antdt::ps
