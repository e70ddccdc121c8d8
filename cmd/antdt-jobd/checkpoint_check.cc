#include "cmd/antdt-jobd/checkpoint_check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/fs.h"
#include "core/json_integer.h"

namespace antdt::jobd {
namespace {

// Whether a file is what MANIFEST.json says; its name. Throws what the JSON
// library throws.
Result<std::string> check_file(const std::string& directory, const nlohmann::json& file) {
  const std::string name = file.at("name");
  if (name.empty() || name.find('/') != std::string::npos) {
    return fail(ErrorKind::kCorrupt, "MANIFEST.json names the file '{}'", name);
  }
  const auto bytes = json_integer<std::uint64_t>(file.at("bytes"));
  ANTDT_TRY(const FileSum sum, sum_file(directory + "/" + name));
  if (sum.bytes != bytes) {
    return fail(ErrorKind::kCorrupt, "{} has {} bytes, not {}", name, sum.bytes, bytes);
  }
  if (sum.xxh3 == file.at("xxh3").get<std::string>()) return name;
  return fail(ErrorKind::kCorrupt, "{} does not have the checksum of MANIFEST.json", name);
}

}  // namespace

Result<FileSum> sum_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorKind::kIo, "{} cannot be read", path);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  FileSum sum;
  std::vector<char> buffer(1 << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         file.gcount() > 0) {
    const auto count = static_cast<std::size_t>(file.gcount());
    XXH3_64bits_update(&state, buffer.data(), count);
    sum.bytes += count;
  }
  sum.xxh3 = fmt::format("{:016x}", XXH3_64bits_digest(&state));
  return sum;
}

std::vector<std::string> checkpoint_names(const std::string& checkpoints) {
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    unsigned long long step = 0, lineage = 0;
    if (std::sscanf(name.c_str(), "s%llu-l%llu-", &step, &lineage) != 2) continue;
    found.push_back({{lineage, step}, name});
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (auto& [order, name] : found) names.push_back(std::move(name));
  return names;
}

Result<WholeCheckpoint> check_checkpoint(const std::string& directory) {
  const auto text = read_file(directory + "/MANIFEST.json");
  if (!text) return fail(ErrorKind::kCorrupt, "{}", text.error().message);
  try {
    const auto manifest = nlohmann::json::parse(*text);
    WholeCheckpoint whole;
    for (const auto& file : manifest.at("files")) {
      auto name = check_file(directory, file);
      if (!name) return fail(ErrorKind::kCorrupt, "{}", name.error().message);
      whole.files.push_back(std::move(*name));
    }
    whole.step = Step{json_integer<std::uint64_t>(manifest.at("step"))};
    return whole;
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "MANIFEST.json cannot be read ({})", e.what());
  }
}

}  // namespace antdt::jobd
