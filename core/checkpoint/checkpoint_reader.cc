#include "core/checkpoint/checkpoint_reader.h"

#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/json_integer.h"
#include "core/os/directory.h"
#include "core/os/fs.h"
#include "core/os/owned_fd.h"

namespace antdt {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::uint64_t kMostText = std::uint64_t{16} << 20;

// Throws what the JSON library throws.
Result<wire::CheckpointFile> file_of(const nlohmann::json& entry) {
  wire::CheckpointFile file;
  file.name = entry.at("name").get<std::string>();
  file.bytes = json_integer<std::uint64_t>(entry.at("bytes"));
  file.xxh3 = entry.at("xxh3").get<std::string>();
  if (is_file_name(file.name)) return file;
  return fail(ErrorKind::kCorrupt, "MANIFEST.json names the file '{}'", file.name);
}

// Fills `part`; an error if there are fewer bytes.
Status read_exactly(int fd, std::span<std::byte> part, const std::string& path) {
  while (!part.empty()) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, path + " cannot be read");
    if (got == 0) {
      return fail(ErrorKind::kCorrupt, "{} ends {} bytes too early", path, part.size());
    }
    part = part.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Status expect_end(int fd, const std::string& path) {
  std::byte more{};
  ssize_t got = 0;
  do {
    got = ::read(fd, &more, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return {};
  return fail(ErrorKind::kCorrupt, "{} is longer than MANIFEST.json says", path);
}

}  // namespace

Result<CheckpointManifest> read_checkpoint_manifest(const std::string& directory) {
  ANTDT_TRY(const std::string text, read_file(directory + "/MANIFEST.json"));
  try {
    const auto json = nlohmann::json::parse(text);
    CheckpointManifest manifest;
    manifest.step = Step{json_integer<std::uint64_t>(json.at("step"))};
    for (const auto& entry : json.at("files")) {
      ANTDT_TRY(wire::CheckpointFile file, file_of(entry));
      manifest.files.push_back(std::move(file));
    }
    return manifest;
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "MANIFEST.json cannot be read ({})", e.what());
  }
}

Result<CheckpointReader> CheckpointReader::open(std::string directory, Progress progress) {
  ANTDT_TRY(CheckpointManifest manifest, read_checkpoint_manifest(directory));
  return CheckpointReader(std::move(directory), std::move(manifest), std::move(progress));
}

std::uint64_t CheckpointReader::total_bytes() const {
  std::uint64_t sum = 0;
  for (const wire::CheckpointFile& file : manifest_.files) sum += file.bytes;
  return sum;
}

Result<const wire::CheckpointFile*> CheckpointReader::said_of(const std::string& name) const {
  const auto found = std::ranges::find(manifest_.files, name, &wire::CheckpointFile::name);
  if (found != manifest_.files.end()) return &*found;
  return fail(ErrorKind::kCorrupt, "{}/MANIFEST.json names no file {}", directory_, name);
}

Result<std::string> CheckpointReader::text(const std::string& name) {
  ANTDT_TRY(const wire::CheckpointFile* said, said_of(name));
  if (said->bytes > kMostText) {
    return fail(ErrorKind::kCorrupt, "{}/MANIFEST.json says that {} has {} bytes", directory_, name,
                said->bytes);
  }
  std::string text(said->bytes, '\0');
  const std::span<std::byte> whole = std::as_writable_bytes(std::span(text));
  ANTDT_RETURN_IF_ERROR(into(name, {&whole, 1}));
  return text;
}

Status CheckpointReader::into(const std::string& name,
                              std::span<const std::span<std::byte>> parts) {
  ANTDT_TRY(const wire::CheckpointFile* said, said_of(name));
  const std::string path = directory_ + "/" + name;
  std::uint64_t room = 0;
  for (const std::span<std::byte> part : parts) room += part.size();
  if (room != said->bytes) {
    return fail(ErrorKind::kCorrupt, "{} should have {} bytes, and MANIFEST.json says {}", path,
                room, said->bytes);
  }
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return fail_errno(ErrorKind::kIo, errno, path + " cannot be read");
  XXH3_state_t sum;
  XXH3_64bits_reset(&sum);
  for (const std::span<std::byte> part : parts) {
    for (std::size_t at = 0; at < part.size(); at += kChunk) {
      const auto chunk = part.subspan(at, std::min(kChunk, part.size() - at));
      ANTDT_RETURN_IF_ERROR(read_exactly(file.get(), chunk, path));
      XXH3_64bits_update(&sum, chunk.data(), chunk.size());
      if (progress_ && !progress_(chunk.size())) {
        return fail(ErrorKind::kAborted, "{} is not wanted any more", path);
      }
    }
  }
  ANTDT_RETURN_IF_ERROR(expect_end(file.get(), path));
  if (fmt::format("{:016x}", XXH3_64bits_digest(&sum)) == said->xxh3) return {};
  return fail(ErrorKind::kCorrupt, "{} does not have the checksum of MANIFEST.json", path);
}

}  // namespace antdt
