#include "trainer/ps_link/slice_file.h"

#include "core/checkpoint_file.h"
#include "core/fs.h"
#include "trainer/ps/slice_image.h"

namespace antdt::ps {
namespace {

// What is synced at a time. A disk writes it within seconds, however slow it is.
constexpr std::size_t kPart = 32U << 20;

}  // namespace

std::string slice_file_name(std::uint32_t slice) { return fmt::format("slice-{:02}.rows", slice); }

Result<wire::CheckpointFile> write_slice(const std::string& directory, const Store& store,
                                         std::uint32_t slice,
                                         const std::function<void()>& progress) {
  ANTDT_TRY(auto writer, CheckpointFileWriter::create(directory, slice_file_name(slice)));
  std::size_t unsynced = 0;
  encode_slice(store, slice, [&](std::string_view bytes) {
    writer.write(bytes);
    unsynced += bytes.size();
    if (unsynced < kPart) return;
    unsynced = 0;
    writer.sync();
    progress();
  });
  auto file = writer.finish();
  progress();
  return file;
}

Status read_slice(const std::string& directory, Store& store, std::uint32_t slice) {
  const std::string path = directory + "/" + slice_file_name(slice);
  ANTDT_TRY(const std::string bytes, read_file(path));
  Status status = decode_slice(store, slice, bytes);
  if (!status) status.error().message = path + ": " + status.error().message;
  return status;
}

}  // namespace antdt::ps
