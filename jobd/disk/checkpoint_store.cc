#include "jobd/disk/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log/log.h"
#include "core/os/directory.h"
#include "core/os/fs.h"
#include "ctl/checkpoints/checkpoint_names.h"
#include "jobd/disk/checkpoint_check.h"

namespace antdt::jobd {
namespace fs = std::filesystem;
namespace {

// The images are binary. Base 16 keeps the file readable for any JSON reader.
std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string run_dir, std::uint32_t keep,
                                 std::function<void()> progress)
    : directory_(std::move(run_dir) + "/checkpoints"),
      keep_(keep),
      progress_(std::move(progress)) {}

Status CheckpointStore::check_files(const wire::CheckpointWritten& written) const {
  std::error_code error;
  const fs::path parent = fs::weakly_canonical(fs::path(written.directory).parent_path(), error);
  const bool is_below = !error && parent == fs::weakly_canonical(directory_, error);
  if (!is_below || !ctl::copies::age_of(fs::path(written.directory).filename().string())) {
    return fail(ErrorKind::kCorrupt, "checkpoint of step {} is in {}, which is none of {}/.tmp-…",
                written.step, written.directory, directory_);
  }
  for (const wire::CheckpointFile& file : written.files) {
    if (!is_file_name(file.name)) {
      return fail(ErrorKind::kCorrupt, "checkpoint of step {} names the file '{}'", written.step,
                  file.name);
    }
    const auto bytes = fs::file_size(fs::path(written.directory) / file.name, error);
    if (error || bytes != file.bytes) {
      return fail(ErrorKind::kCorrupt, "checkpoint of step {}: {}/{} should have {} bytes{}",
                  written.step, written.directory, file.name, file.bytes,
                  error ? ": " + error.message() : fmt::format(" and has {}", bytes));
    }
  }
  return {};
}

Result<std::string> CheckpointStore::store(const ctl::job::StoreCheckpoint& checkpoint) {
  const wire::CheckpointWritten& written = checkpoint.written;
  const std::string name =
      fmt::format("s{:010}-l{}-g{}-{}.{}", written.step.value, checkpoint.lineage,
                  checkpoint.generation, checkpoint.writer.worker, checkpoint.writer.attempt);
  std::error_code error;
  const std::string final_path = directory_ + "/" + name;
  if (fs::exists(final_path, error)) {  // reported twice, or the same step was written once more
    discard(written.directory);
    return name;
  }
  ANTDT_RETURN_IF_ERROR(check_files(written));
  const nlohmann::json ledger{{"schema", 1},
                              {"epoch", checkpoint.epoch.value},
                              {"ledger_image", to_hex(checkpoint.ledger_image)},
                              {"accounts_image", to_hex(checkpoint.accounts_image)}};
  ANTDT_RETURN_IF_ERROR(
      write_file_atomic(written.directory + "/ledger.json", ledger.dump(1) + "\n"));
  nlohmann::json manifest{{"schema", 1},
                          {"lineage", checkpoint.lineage.value},
                          {"generation", checkpoint.generation.value},
                          {"step", written.step.value},
                          {"writer", to_string(checkpoint.writer.worker)},
                          {"attempt", checkpoint.writer.attempt.value},
                          {"files", nlohmann::json::array()}};
  for (const wire::CheckpointFile& file : written.files) {
    manifest["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  }
  ANTDT_TRY(const wire::CheckpointFile sum, sum_file(written.directory, "ledger.json"));
  manifest["files"].push_back({{"name", sum.name}, {"bytes", sum.bytes}, {"xxh3", sum.xxh3}});
  ANTDT_RETURN_IF_ERROR(
      write_file_atomic(written.directory + "/MANIFEST.json", manifest.dump(2) + "\n"));
  fs::rename(written.directory, final_path, error);
  if (error) {
    return fail_errno(ErrorKind::kIo, error.value(),
                      fmt::format("rename {} to {}", written.directory, final_path));
  }
  ANTDT_RETURN_IF_ERROR(sync_directory(directory_));
  prune(fs::path(written.directory).filename().string());
  return name;
}

Result<ctl::job::CheckpointFound> CheckpointStore::load(const std::string& name) const {
  const std::string path = directory_ + "/" + name;
  const auto damaged = [&](const std::string& what) {
    return fail(ErrorKind::kCorrupt, "checkpoint {} is damaged and passed over: {}", path, what);
  };
  const auto whole = check_checkpoint(path, progress_);
  if (!whole && whole.error().kind == ErrorKind::kCorrupt) return damaged(whole.error().message);
  const auto ledger_text = whole ? read_file(path + "/ledger.json") : std::string();
  if (!whole || !ledger_text) {
    return fail(ErrorKind::kIo, "checkpoint {} cannot be read: {}", path,
                whole ? ledger_text.error().message : whole.error().message);
  }
  try {
    const auto ledger = nlohmann::json::parse(*ledger_text);
    ctl::job::CheckpointFound found;
    found.directory = path;
    found.step = whole->step;
    found.ledger_image = from_hex(ledger.at("ledger_image").get<std::string>());
    found.accounts_image = from_hex(ledger.at("accounts_image").get<std::string>());
    return found;
  } catch (const nlohmann::json::exception& e) {
    return damaged(fmt::format("ledger.json cannot be read ({})", e.what()));
  }
}

Result<shard_server::Accounts> CheckpointStore::accounts_in(const std::string& name) const {
  const std::string path = directory_ + "/" + name + "/ledger.json";
  ANTDT_TRY(const std::string text, read_file(path));
  const auto ledger = nlohmann::json::parse(text, nullptr, false);
  if (!ledger.is_object() || !ledger.contains("accounts_image") ||
      !ledger["accounts_image"].is_string()) {
    return fail(ErrorKind::kCorrupt, "{} has no accounts", path);
  }
  return shard_server::Accounts::restore(from_hex(ledger["accounts_image"].get<std::string>()));
}

Result<CheckpointStore::Newest> CheckpointStore::newest() const {
  ANTDT_TRY(std::vector<std::string> all, checkpoint_names(directory_));
  Newest newest;
  for (; !all.empty(); all.pop_back()) {
    auto found = load(all.back());
    if (found) {
      newest.found = std::move(*found);
      break;
    }
    (found.error().kind == ErrorKind::kCorrupt ? newest.problems : newest.unreadable)
        .push_back(found.error().message);
  }
  return newest;
}

Result<std::vector<std::string>> CheckpointStore::list() const {
  ANTDT_TRY(std::vector<std::string> complete, checkpoint_names(directory_));
  std::erase_if(complete, [&](const std::string& name) {
    std::error_code error;
    return !fs::exists(fs::path(directory_) / name / "MANIFEST.json", error) && !error;
  });
  return complete;
}

std::string CheckpointStore::about_room() const {
  std::error_code error;
  const auto mib = [](std::uintmax_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const fs::space_info space = fs::space(directory_, error);
  std::string text = fmt::format("{} has {:.1f} MiB free", directory_, mib(space.available));
  const auto names = list();
  if (!names || names->empty()) return text;
  const std::string newest = directory_ + "/" + names->back();
  std::uintmax_t bytes = 0;
  for (const std::string& file : names_in(newest).value_or(std::vector<std::string>())) {
    const std::uintmax_t size = fs::file_size(fs::path(newest) / file, error);
    if (!error) bytes += size;
  }
  return text + fmt::format(", the newest checkpoint takes {:.1f} MiB", mib(bytes));
}

void CheckpointStore::discard(const std::string& directory) const {
  const fs::path path(directory);
  if (path.parent_path() != fs::path(directory_)) return;
  std::error_code ignored;
  if (ctl::copies::age_of(path.filename().string())) fs::remove_all(path, ignored);
}

void CheckpointStore::remove_unfinished(ctl::copies::Age up_to) const {
  for (const std::string& name : names_in(directory_).value_or(std::vector<std::string>())) {
    const auto age = ctl::copies::age_of(name);
    if (age && *age <= up_to) discard(directory_ + "/" + name);
  }
}

// All that is older than the oldest that is kept goes, also what is not whole any more, since its
// removal was interrupted.
void CheckpointStore::prune(const std::string& stored) const {
  const auto age = ctl::copies::age_of(stored);
  if (age && age->number > 0) remove_unfinished({age->generation, age->number - 1});
  const auto whole = list();
  const auto names = checkpoint_names(directory_);
  if (!whole || !names) {
    return log_warn("old checkpoints are not removed: {}",
                    (whole ? names.error() : whole.error()).message);
  }
  if (whole->size() < keep_) return;
  // By order: if the oldest one vanished meanwhile, nothing younger goes.
  const auto oldest = ctl::copies::order_of((*whole)[whole->size() - keep_]);
  for (const std::string& name : *names) {
    if (ctl::copies::order_of(name) >= oldest) break;
    std::error_code error;
    fs::remove_all(fs::path(directory_) / name, error);
    if (error) log_warn("old checkpoint {} could not be removed: {}", name, error.message());
  }
}

}  // namespace antdt::jobd
