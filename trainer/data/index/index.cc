#include "trainer/data/index/index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/json_integer.h"

namespace antdt::data {
namespace {

using nlohmann::json;

constexpr std::size_t kFooterWords = 6;

// Whether the sizes add up to `keys`, without overflow.
bool adds_up(std::span<const std::uint64_t> sizes, std::uint64_t keys) {
  for (const std::uint64_t size : sizes) {
    if (size > keys) return false;
    keys -= size;
  }
  return keys == 0;
}

}  // namespace

std::string encode_meta(const IndexMeta& meta) {
  json files = json::array();
  for (const IndexedFile& file : meta.files) {
    files.push_back({{"path", file.path},
                     {"bytes", file.bytes},
                     {"mtime_ns", file.mtime_ns},
                     {"ctime_ns", file.ctime_ns},
                     {"sample", file.sample},
                     {"fingerprint", file.fingerprint},
                     {"first_record", file.first_record},
                     {"points_bytes", file.points_bytes},
                     {"records", file.records}});
  }
  const json whole = {{"files", files},
                      {"records", meta.records},
                      {"quarantined", meta.quarantined},
                      {"quarantine_file", meta.quarantine_file},
                      {"class_names", meta.class_names},
                      {"classes", meta.classes},
                      {"vocabulary_sizes", meta.vocabulary_sizes},
                      {"built_by", meta.built_by}};
  // Paths and class names are the user's bytes, and may not be UTF-8.
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<IndexMeta> decode_meta(std::string_view text) {
  try {
    const json whole = json::parse(text);
    IndexMeta meta;
    for (const json& file : whole.at("files")) {
      meta.files.push_back({file.at("path"), json_integer<std::uint64_t>(file.at("bytes")),
                            json_integer<std::int64_t>(file.at("mtime_ns")), file.at("sample"),
                            file.at("fingerprint"),
                            json_integer<std::uint64_t>(file.at("first_record")),
                            json_integer<std::uint64_t>(file.at("records")),
                            json_integer<std::int64_t>(file.at("ctime_ns")),
                            json_integer<std::uint64_t>(file.at("points_bytes"))});
    }
    meta.records = json_integer<std::uint64_t>(whole.at("records"));
    meta.quarantined = json_integer<std::uint64_t>(whole.at("quarantined"));
    meta.quarantine_file = whole.at("quarantine_file");
    meta.class_names = whole.at("class_names").get<std::vector<std::string>>();
    meta.classes = json_integer<std::uint32_t>(whole.at("classes"));
    for (const json& size : whole.at("vocabulary_sizes")) {
      meta.vocabulary_sizes.push_back(json_integer<std::uint64_t>(size));
    }
    meta.built_by = whole.at("built_by");
    return meta;
  } catch (const json::exception& e) {
    return fail(ErrorKind::kCorrupt, "an index's description cannot be read: {}", e.what());
  }
}

std::string hex_of(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string fingerprint_of(std::string_view bytes) {
  return hex_of(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string sample_fingerprint(std::string_view bytes) {
  constexpr std::size_t kBlocks = 16;
  constexpr std::size_t kBlockBytes = 4096;
  if (bytes.size() <= kBlocks * kBlockBytes) return fingerprint_of(bytes);
  std::string sample;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    sample += bytes.substr((bytes.size() - kBlockBytes) / (kBlocks - 1) * i, kBlockBytes);
  }
  sample += bytes.substr(bytes.size() - kBlockBytes);
  return fingerprint_of(sample);
}

std::string fingerprint_of(const IndexMeta& meta) {
  std::string all = fmt::format("records {}", meta.records);
  for (const IndexedFile& file : meta.files) {
    all += fmt::format("\n{} {} {}", file.bytes, file.records, file.fingerprint);
  }
  return fingerprint_of(std::string_view(all));
}

Result<Index> Index::open(const std::string& path, Opening& opening) {
  ANTDT_TRY(MappedFile mapped, MappedFile::open(path));
  Index index(std::move(mapped));
  const std::string_view bytes = index.file_.bytes();
  const auto broken = [&] {
    return fail(ErrorKind::kCorrupt, "{} is not a whole index of this version: delete it", path);
  };
  std::array<std::uint64_t, kFooterWords> footer{};
  if (bytes.size() < kIndexMagic.size() + sizeof footer) return broken();
  std::memcpy(footer.data(), bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  const auto [records, keys, points_bytes, meta_bytes, hash, magic] = footer;
  if (!bytes.starts_with(kIndexMagic) || !bytes.ends_with(kIndexMagic)) return broken();
  const std::uint64_t room = bytes.size() - kIndexMagic.size() - sizeof footer;
  if (records > room / 8 || keys > room / 8 || points_bytes > room || meta_bytes > room ||
      records * 8 + keys * 8 + points_bytes + meta_bytes != room) {
    return broken();
  }
  const std::string_view whole = bytes.substr(kIndexMagic.size(), room);
  if (!opening.has_checked(index.file_)) {
    if (opening.hash(kChecksIndex, index.file_, whole) != hash) return broken();
    opening.note_checked(index.file_);
  }
  ANTDT_TRY(index.meta_, decode_meta(whole.substr(room - meta_bytes)));
  index.points_ = whole.substr((records + keys) * 8, points_bytes);
  // The mapping begins on a page and the magic has 8 bytes, so these words are aligned.
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data() + kIndexMagic.size());
  index.offsets_ = {words, records};
  index.vocabulary_ = {words + records, keys};
  if (!adds_up(index.meta_.vocabulary_sizes, keys)) return broken();
  std::vector<std::uint64_t> points;
  for (const IndexedFile& file : index.meta_.files) points.push_back(file.points_bytes);
  if (!adds_up(points, points_bytes)) return broken();
  if (records != 0 && records != index.meta_.records) return broken();
  return index;
}

Vocabulary Index::vocabulary() const {
  Vocabulary vocabulary;
  std::size_t at = 0;
  for (const std::uint64_t size : meta_.vocabulary_sizes) {
    const auto keys = vocabulary_.subspan(at, size);
    vocabulary.emplace_back(keys.begin(), keys.end());
    at += size;
  }
  return vocabulary;
}

std::string_view Index::points(std::size_t i) const {
  std::uint64_t at = 0;
  for (std::size_t before = 0; before < i; ++before) at += meta_.files[before].points_bytes;
  return points_.substr(at, meta_.files[i].points_bytes);
}

void Index::set_paths(const std::vector<std::string>& paths) {
  if (paths.size() != meta_.files.size()) return;
  for (std::size_t i = 0; i < paths.size(); ++i) meta_.files[i].path = paths[i];
}

bool Index::matches_files(Opening& opening) const {
  return std::all_of(meta_.files.begin(), meta_.files.end(), [&](const IndexedFile& file) {
    opening.tell(kChecksIndex, file.path, 0, file.bytes);
    const auto mapped = MappedFile::open(file.path);
    return mapped && mapped->bytes().size() == file.bytes && mapped->mtime_ns() == file.mtime_ns &&
           mapped->ctime_ns() == file.ctime_ns &&
           sample_fingerprint(mapped->bytes()) == file.sample;
  });
}

}  // namespace antdt::data
