#include "cmd/antdt-jobd/checkpoint_store.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "core/log.h"

namespace antdt::jobd {
namespace fs = std::filesystem;

CheckpointStore::CheckpointStore(std::string run_dir, std::uint32_t keep)
    : directory_(std::move(run_dir) + "/checkpoints"), keep_(keep) {}

Status CheckpointStore::check_files(const wire::CheckpointWritten& written) const {
  std::error_code error;
  const fs::path parent = fs::weakly_canonical(fs::path(written.directory).parent_path(), error);
  if (error || parent != fs::weakly_canonical(directory_, error)) {
    return fail(ErrorKind::kCorrupt, "checkpoint of step {} is in {}, not below {}", written.step,
                written.directory, directory_);
  }
  for (const wire::CheckpointFile& file : written.files) {
    if (file.name.empty() || file.name.find('/') != std::string::npos) {
      return fail(ErrorKind::kCorrupt, "checkpoint of step {} names the file '{}'", written.step,
                  file.name);
    }
    const auto bytes = fs::file_size(fs::path(written.directory) / file.name, error);
    if (error || bytes != file.bytes) {
      return fail(
          ErrorKind::kCorrupt,
          "checkpoint of step {}: {}/{} should have {} bytes{}; is the run directory shared "
          "by all hosts?",
          written.step, written.directory, file.name, file.bytes,
          error ? ": " + error.message() : fmt::format(" and has {}", bytes));
    }
  }
  return {};
}

Result<std::string> CheckpointStore::store(const wire::CheckpointWritten& written, Member writer,
                                           Lineage lineage, Generation generation,
                                           const std::string& ledger_json) {
  ANTDT_RETURN_IF_ERROR(check_files(written));
  const std::string name = fmt::format("s{:010}-l{}-g{}-{}.{}", written.step.value, lineage,
                                       generation, writer.worker, writer.attempt);
  nlohmann::json manifest{{"schema", 1},
                          {"lineage", lineage.value},
                          {"generation", generation.value},
                          {"step", written.step.value},
                          {"writer", to_string(writer.worker)},
                          {"attempt", writer.attempt.value},
                          {"files", nlohmann::json::array()}};
  for (const wire::CheckpointFile& file : written.files) {
    manifest["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  }
  ANTDT_RETURN_IF_ERROR(write_file_atomic(written.directory + "/ledger.json", ledger_json));
  ANTDT_RETURN_IF_ERROR(
      write_file_atomic(written.directory + "/MANIFEST.json", manifest.dump(2) + "\n"));
  const std::string final_path = directory_ + "/" + name;
  std::error_code error;
  if (fs::exists(final_path, error)) {  // the same step once more, as at the end of a job
    fs::remove_all(written.directory, error);
    return name;
  }
  fs::rename(written.directory, final_path, error);
  if (error) {
    return fail_errno(ErrorKind::kIo, error.value(),
                      fmt::format("rename {} to {}", written.directory, final_path));
  }
  ANTDT_RETURN_IF_ERROR(sync_directory(directory_));
  prune();
  return name;
}

std::vector<std::string> CheckpointStore::list() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("s") && fs::exists(entry.path() / "MANIFEST.json")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

void CheckpointStore::prune() const {
  const std::vector<std::string> names = list();
  if (names.size() <= keep_) return;
  for (std::size_t i = 0; i < names.size() - keep_; ++i) {
    std::error_code error;
    fs::remove_all(fs::path(directory_) / names[i], error);
    if (error) log_warn("old checkpoint {} could not be removed: {}", names[i], error.message());
  }
}

}  // namespace antdt::jobd
