#include "jobd/disk/checkpoint_transfer.h"

#include <algorithm>
#include <filesystem>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/os/directory.h"
#include "core/os/fs.h"
#include "jobd/disk/checkpoint_check.h"

namespace antdt::jobd {
namespace {

namespace fs = std::filesystem;

std::string there(const std::string& directory, const std::string& file) {
  return fmt::format("checkpoints/{}/{}", directory, file);
}

std::string here(const std::string& run_dir, const std::string& directory) {
  return fmt::format("{}/checkpoints/{}", run_dir, directory);
}

// For how long a disk may read, or sync, so much.
Duration time_for(std::uint64_t bytes) {
  constexpr std::uint64_t kSlowest = 5'000'000;  // bytes a second
  return std::chrono::seconds(60 + bytes / kSlowest);
}

Status fetch_files(HostFiles& host, const std::string& from, const std::string& into,
                   const std::vector<wire::CheckpointFile>& files) {
  ANTDT_RETURN_IF_ERROR(make_directories(into, 0700));
  for (const wire::CheckpointFile& file : files) {
    if (!is_file_name(file.name)) {
      return fail(ErrorKind::kCorrupt, "a checkpoint names the file '{}'", file.name);
    }
    ANTDT_RETURN_IF_ERROR(host.fetch(there(from, file.name), into + "/" + file.name, file));
  }
  return sync_directory(into);
}

// Whether the other host has exactly this checkpoint. What cannot be read there is not it.
Result<bool> has_checkpoint(HostFiles& host, const std::string& name,
                            const std::vector<wire::CheckpointFile>& files) {
  for (const wire::CheckpointFile& said : files) {
    const auto found =
        host.ask<wire::FileSummed>(wire::FileSum{there(name, said.name)}, time_for(said.bytes));
    const bool is_answered =
        found || found.error().kind == ErrorKind::kIo || found.error().kind == ErrorKind::kCorrupt;
    if (!is_answered) return tl::unexpected<Error>(found.error());
    if (!found || found->bytes != said.bytes || found->xxh3 != said.xxh3) return false;
  }
  return true;
}

}  // namespace

Result<HostLook> look_at(HostFiles& host, const std::string& probe) {
  ANTDT_TRY(const wire::FileProbed probed, host.ask<wire::FileProbed>(wire::FileProbe{probe}));
  ANTDT_TRY(const wire::FileListed listed, host.ask<wire::FileListed>(wire::FileList{}));
  HostLook look{probed.identity, {}};
  for (const wire::FileEntry& entry : listed.checkpoints) {
    if (entry.whole && ctl::copies::order_of(entry.name)) look.whole.push_back(entry.name);
  }
  return look;
}

Status fetch_unfinished(HostFiles& host, const std::string& run_dir, const std::string& unfinished,
                        const std::vector<wire::CheckpointFile>& files) {
  return fetch_files(host, unfinished, here(run_dir, unfinished), files);
}

Status push_checkpoint(HostFiles& host, const std::string& run_dir, const std::string& name,
                       const std::string& unfinished) {
  const std::string directory = here(run_dir, name);
  ANTDT_TRY(const CheckpointManifest manifest, read_checkpoint_manifest(directory));
  std::vector<wire::CheckpointFile> files = manifest.files;
  ANTDT_TRY(const wire::CheckpointFile of_manifest, sum_file(directory, "MANIFEST.json"));
  files.insert(files.begin(), of_manifest);  // small, and missing if there is no such checkpoint
  ANTDT_TRY(const bool is_there, has_checkpoint(host, name, files));
  if (is_there) return {};
  std::ranges::rotate(files, files.begin() + 1);
  std::uint64_t bytes = 0;
  for (const wire::CheckpointFile& file : files) {
    ANTDT_RETURN_IF_ERROR(
        host.push(directory + "/" + file.name, there(unfinished, file.name), file));
    bytes += file.bytes;
  }
  ANTDT_TRY(
      [[maybe_unused]] const auto done,
      host.ask<wire::FileDone>(wire::FileCommit{unfinished, name, files}, time_for(2 * bytes)));
  return {};
}

Status fetch_checkpoint(HostFiles& host, const std::string& run_dir, const std::string& name) {
  ANTDT_TRY(const std::string text, host.read_all(there(name, "MANIFEST.json")));
  const std::string unfinished = fmt::format(".tmp-0-fetched-{}", name);
  const std::string into = here(run_dir, unfinished);
  ANTDT_RETURN_IF_ERROR(make_directories(into, 0700));
  ANTDT_RETURN_IF_ERROR(write_file_atomic(into + "/MANIFEST.json", text));
  ANTDT_TRY(const CheckpointManifest manifest, read_checkpoint_manifest(into));
  ANTDT_RETURN_IF_ERROR(fetch_files(host, name, into, manifest.files));
  const std::string final_path = here(run_dir, name);
  std::error_code error;
  fs::remove_all(final_path, error);  // a damaged one
  fs::rename(into, final_path, error);
  if (error) return fail_errno(ErrorKind::kIo, error.value(), "rename " + into);
  return sync_directory(run_dir + "/checkpoints");
}

Status clean_checkpoints(HostFiles& host, const std::optional<std::vector<std::string>>& keep,
                         ctl::copies::Age up_to) {
  ANTDT_TRY(const wire::FileListed listed, host.ask<wire::FileListed>(wire::FileList{}));
  for (const wire::FileEntry& entry : listed.checkpoints) {
    const auto age = ctl::copies::age_of(entry.name);
    const bool old = keep && ctl::copies::order_of(entry.name) &&
                     std::ranges::find(*keep, entry.name) == keep->end();
    const bool left = age && *age <= up_to;
    if (!old && !left) continue;
    ANTDT_TRY([[maybe_unused]] const auto done,
              host.ask<wire::FileDone>(wire::FileRemove{entry.name}, std::chrono::seconds(60)));
  }
  return {};
}

}  // namespace antdt::jobd
