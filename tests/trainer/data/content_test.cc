#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "tests/trainer/data/packed.h"
#include "tests/trainer/data/testing.h"
#include "trainer/data/content/contents.h"
#include "trainer/data/content/line_scan.h"
#include "trainer/data/index/index_build.h"
#include "trainer/data/line_files.h"

namespace antdt::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Words of which gzip makes blocks of every kind, in lines of up to `longest` letters.
std::string text_of(std::size_t bytes, std::size_t longest = 200, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) {
    const std::size_t length = random() % longest;
    const auto kind = random() % 3;
    for (std::size_t i = 0; i < length; ++i) {
      text += kind == 0 ? 'a' : static_cast<char>('a' + random() % (kind == 1 ? 4 : 26));
    }
    text += random() % 5 == 0 ? "\r\n" : "\n";
  }
  return text + "the last line has no end";
}

struct Line {
  std::string text;
  std::uint64_t offset = 0;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({std::string(line), at});
    at = end + 1;
  }
  return lines;
}

class ContentTest : public DataTest {
 protected:
  // What a pass over the file found, as an index keeps it; the error's text where it failed.
  std::string scan(const std::string& path) {
    lines_.clear();
    const auto mapped = MappedFile::open(path);
    EXPECT_TRUE(mapped.has_value());
    const auto points = scan_lines(*mapped, [&](std::string_view line, std::uint64_t offset) {
      lines_.push_back({std::string(line), offset});
      return Status{};
    });
    error_ = points ? "" : points.error().message;
    return points ? *points : "";
  }

  void expect_all_lines_anywhere(const std::string& packed, const std::string& text,
                                 std::size_t points_at_least) {
    const std::string path = file("packed", packed);
    const std::string encoded = scan(path);
    ASSERT_EQ(error_, "");
    const std::vector<Line> wanted = lines_of(text);
    ASSERT_EQ(lines_.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(lines_[i].text, wanted[i].text) << i;
      ASSERT_EQ(lines_[i].offset, wanted[i].offset) << i;
    }
    auto points = decode_points(encoded, packed.size());
    ASSERT_OK(points);
    EXPECT_EQ(points->content_bytes, text.size());
    EXPECT_GE(points->points.size(), points_at_least);
    Contents contents;
    contents.add(*MappedFile::open(path), std::move(*points));
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
      const std::size_t which = i == 0 ? wanted.size() - 1 : random() % wanted.size();
      const auto line = contents.line(0, wanted[which].offset);
      ASSERT_OK(line);
      ASSERT_EQ(*line, wanted[which].text) << which;
    }
    EXPECT_FALSE(contents.line(0, text.size()));
  }

  std::vector<Line> lines_;
  std::string error_;
};

TEST_F(ContentTest, ALineOfAGzipFileIsReadWithoutWhatIsBeforeIt) {
  const std::string text = text_of(5 << 20);
  for (const int level : {0, 1, 6}) expect_all_lines_anywhere(gzip(text, level), text, 4);
}

TEST_F(ContentTest, MembersThatFollowOneAnotherAreOneContent) {
  const std::string text = text_of(4 << 20);
  const std::string packed = gzip(text.substr(0, 100)) + gzip("") +
                             gzip(text.substr(100, 2'000'000)) + gzip(text.substr(2'000'100));
  expect_all_lines_anywhere(packed, text, 4);
  expect_all_lines_anywhere(packed + std::string(512, '\0'), text, 4);
}

TEST_F(ContentTest, ALineOfAZstdFileIsReadFromTheBeginningOfItsFrame) {
  const std::string text = text_of(5 << 20);
  expect_all_lines_anywhere(zstd_frames(text, 300'000), text, 4);
  expect_all_lines_anywhere(zstd(text), text, 1);
}

TEST_F(ContentTest, FramesOfPzstdThatAreToBeSkippedAreSkipped) {
  const std::string text = text_of(100'000);
  const std::string skipped("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
  expect_all_lines_anywhere(
      skipped + zstd(text.substr(0, 5000)) + skipped + zstd(text.substr(5000)) + skipped, text, 1);
}

TEST_F(ContentTest, LinesLongerThanWhatIsUnpackedAtOnceAreWhole) {
  const std::string text = text_of(9 << 20, 3'000'000);
  expect_all_lines_anywhere(gzip(text, 1), text, 5);
  expect_all_lines_anywhere(zstd_frames(text, 700'000), text, 5);
}

TEST_F(ContentTest, APlainFileHasNoAccessPoints) {
  EXPECT_EQ(scan(file("plain", "one\r\n\ntwo")), "");
  ASSERT_EQ(lines_.size(), 3U);
  EXPECT_EQ(lines_[0].text, "one");
  EXPECT_EQ(lines_[1].text, "");
  EXPECT_EQ(lines_[2].text, "two");
  EXPECT_EQ(lines_[2].offset, 6U);
}

TEST_F(ContentTest, AFileThatIsCutShortIsNamed) {
  const std::string text = text_of(3 << 20);
  for (const std::string& packed : {gzip(text), zstd_frames(text, 300'000)}) {
    for (const std::size_t size :
         {packed.size() - 1, packed.size() - 9, packed.size() / 2, std::size_t{11}}) {
      scan(file("cut", packed.substr(0, size)));
      EXPECT_THAT(error_, AllOf(HasSubstr("cut cannot be unpacked"), HasSubstr("cut short")))
          << size;
    }
  }
}

TEST_F(ContentTest, ADamagedFileIsNamed) {
  const std::string text = text_of(1 << 20);
  std::string packed = gzip(text);
  for (const std::size_t at : {packed.size() / 2, packed.size() - 6}) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    scan(file("damaged", damaged));
    EXPECT_THAT(error_, HasSubstr("damaged cannot be unpacked at byte")) << at;
  }
  scan(file("damaged", packed + "more"));
  EXPECT_THAT(error_, HasSubstr("what follows is not packed by gzip"));
  packed = zstd(text);
  packed[6] = static_cast<char>(packed[6] ^ 0xff);
  scan(file("damaged", packed + "more"));
  EXPECT_THAT(error_, HasSubstr("zstd -t"));
}

TEST_F(ContentTest, AZstdFrameTooLongToBeUnpackedForOneRecordIsRefusedWithAWayOut) {
  const std::string part = std::string(1023, 'x') + "\n";
  std::string text;
  text.reserve((258U << 20));
  while (text.size() < (257U << 20)) text += part;
  const std::string packed = zstd(text);
  text = {};
  scan(file("long", packed));
  EXPECT_THAT(error_, AllOf(HasSubstr("long has a zstd frame of more than 256 MiB"),
                            HasSubstr("split -C 4m")));
}

TEST_F(ContentTest, ArchivesThatHaveNoMiddleAreRefused) {
  scan(file("a.bz2", "BZh91AY&SY1234"));
  EXPECT_THAT(error_, HasSubstr("bunzip2"));
  scan(file("a.xz", std::string("\xfd"
                                "7zXZ\0\0",
                                7)));
  EXPECT_THAT(error_, HasSubstr("xz -dc"));
}

TEST_F(ContentTest, AFileThatEndsInsideOfAnArchivesFirstBytesIsPlain) {
  for (const std::string archive : {"BZh91AY&SY", "\x1f\x8b", "\x28\xb5\x2f\xfd",
                                    "\xfd"
                                    "7zXZ"}) {
    for (std::size_t bytes = 0; bytes < archive.size(); ++bytes) {
      EXPECT_EQ(scan(file("short", archive.substr(0, bytes))), "");
      EXPECT_EQ(error_, "") << archive << ", " << bytes << " bytes";
    }
  }
}

TEST_F(ContentTest, PointsThatContradictThemselvesAreRefused) {
  PointsBuilder builder(Packing::kGzip);
  builder.add({0, 0, false, 0, {}}, {});
  builder.add({1 << 20, 500, true, 3, {}}, "window");
  const std::string good = builder.encode(2 << 20);
  ASSERT_OK(decode_points(good, 1000));
  EXPECT_FALSE(decode_points(good, 499)) << "a point behind the end of the file";
  for (std::size_t cut = 1; cut < good.size(); cut += 8) {
    EXPECT_FALSE(decode_points(good.substr(0, cut), 1000)) << cut;
  }
  const auto with = [&](std::size_t word, std::uint64_t value) {
    std::string bad = good;
    std::memcpy(bad.data() + word * 8, &value, 8);
    return decode_points(bad, 1000).has_value();
  };
  EXPECT_FALSE(with(0, 9)) << "packing";
  EXPECT_FALSE(with(1, 5)) << "content";
  EXPECT_FALSE(with(2, ~0ULL)) << "number of points";
  EXPECT_FALSE(with(2, 0)) << "number of points";
  EXPECT_FALSE(with(3, ~0ULL)) << "bytes of windows";
  EXPECT_FALSE(with(4, 1)) << "the first point";
  EXPECT_FALSE(with(8, 0)) << "order";
  EXPECT_FALSE(with(9, 0)) << "order";
  EXPECT_FALSE(with(10, 1000)) << "window";
  EXPECT_FALSE(with(11, 1 | 9ULL << 32)) << "bits";
}

// ------------------------------------------------------------------ as [data]

std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += criteo_row(i % 3 == 0 ? "1" : "0", std::to_string(i)) + "\n";
  }
  return text;
}

class PackedDataTest : public DataTest {
 protected:
  std::string beside(const std::string& path) {
    return config("criteo", path, R"(, "index": "beside")");
  }
  std::vector<std::string> indexes_in(const std::string& folder) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(PackedDataTest, RecordsAreThoseOfTheUnpackedFile) {
  const std::string text = rows(20000);
  auto plain = reader(config("criteo", file("a.tsv", text)));
  ASSERT_OK(plain);
  for (const std::string& packed : {gzip(text), zstd_frames(text, 1 << 20)}) {
    auto opened = reader(config("criteo", file("packed", packed)));
    ASSERT_OK(opened);
    ASSERT_EQ((*opened)->records(), 20000U);
    std::vector<std::uint64_t> numbers = first_records(20000);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(3));
    numbers.resize(2000);
    Examples wanted, found;
    ASSERT_OK((*plain)->read(numbers, wanted));
    ASSERT_OK((*opened)->read(numbers, found));
    EXPECT_EQ(found.dense, wanted.dense);
    EXPECT_EQ(found.ids, wanted.ids);
    EXPECT_EQ(found.labels, wanted.labels);
  }
}

TEST_F(PackedDataTest, PackedAndPlainFilesMayBeMixed) {
  const std::string json = R"({"data": {"format": "criteo", "paths": [")" +
                           file("a.gz", gzip(rows(50))) + "\", \"" + file("b", rows(20)) +
                           "\", \"" + file("c.zst", zstd(rows(30))) + "\"]}}";
  auto opened = reader(json);
  ASSERT_OK(opened);
  ASSERT_EQ((*opened)->records(), 100U);
  Examples found;
  ASSERT_OK((*opened)->read(std::vector<std::uint64_t>{99, 0, 50, 70, 49}, found));
  for (const auto& [at, number] : {std::pair{0, 29}, {1, 0}, {2, 0}, {3, 0}, {4, 49}}) {
    EXPECT_FLOAT_EQ(found.dense[static_cast<std::size_t>(at) * 13],
                    std::log1p(static_cast<float>(number)));
  }
}

TEST_F(PackedDataTest, ADamagedFileEndsTheRunBeforeItStarts) {
  const std::string packed = gzip(rows(500));
  const auto summary = index(config("criteo", file("a.gz", packed.substr(0, packed.size() - 4))));
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(summary.error().message, HasSubstr("a.gz cannot be unpacked"));
}

TEST_F(PackedDataTest, AByteOfTheIndexThatChangedIsFoundAndTheIndexBuiltAgain) {
  const std::string json = config("criteo", file("a.gz", gzip(rows(40000), 1)));
  const auto before = index(json);
  ASSERT_OK(before);
  const std::string path = indexes_in(cache()).at(0);
  const std::string good = *read_file(path);
  for (std::size_t at = 3; at < good.size(); at += good.size() / 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(Index::open(path)) << at;
    ASSERT_OK(index(json));
    EXPECT_EQ(*read_file(path), good) << at;
  }
}

// Only 32 bytes of a point, and not its 32 KiB of content before it, wait in memory for the end.
TEST_F(ContentTest, ABuilderThatGivesItsWindowsAwayKeepsNone) {
  std::string windows;
  PointsBuilder gives(Packing::kGzip, [&](std::string_view window) { windows += window; });
  PointsBuilder keeps(Packing::kGzip);
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (PointsBuilder* builder : {&gives, &keeps}) {
      builder->add({i << 20, i << 10, i > 0, 0, {}}, rows(40 + static_cast<int>(i)));
    }
  }
  const PointsFound found = gives.found(4 << 20);
  EXPECT_EQ(found.front.size(), 32U + 3 * 32);
  EXPECT_EQ(found.windows_bytes, windows.size());
  const std::string whole = keeps.encode(4 << 20);
  EXPECT_EQ(found.bytes(), whole.size());
  EXPECT_EQ(found.front + windows + std::string(found.zeros(), '\0'), whole);
  EXPECT_EQ(gives.encode(4 << 20).size() + windows.size(), whole.size());
}

TEST_F(PackedDataTest, TheIndexOfSeveralFilesHasThePointsOfEachAndNothingElseIsLeft) {
  const std::vector<std::string> packed = {file("a.gz", gzip(rows(40000), 1)),
                                           file("b.tsv", rows(3)),
                                           file("c.gz", gzip(rows(30000), 1))};
  DataConfig config;
  config.format = "criteo";
  config.paths = packed;
  Opening opening;
  const auto made = ensure_index(config, cache(), nullptr, opening);
  ASSERT_OK(made);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const auto alone = scan_lines(*MappedFile::open(packed[i]),
                                  [](std::string_view, std::uint64_t) { return Status{}; });
    ASSERT_OK(alone);
    EXPECT_EQ(made->points(i), *alone) << packed[i];
    EXPECT_EQ(alone->empty(), i == 1);
  }
  EXPECT_EQ(indexes_in(cache()).size(), 1U);
}

TEST_F(PackedDataTest, AnIndexBesideTheDataServesOthersThatHaveTheDataElsewhere) {
  std::filesystem::create_directories(directory_ / "here");
  const std::string path = file("here/a.gz", gzip(rows(300)));
  ASSERT_OK(index(beside(path)));
  EXPECT_TRUE(indexes_in(cache()).empty());
  const std::string made = indexes_in(directory_ / "here/.antdt-index").at(0);
  const auto written = std::filesystem::last_write_time(made);
  std::filesystem::rename(directory_ / "here", directory_ / "there");
  auto opened = reader(beside(directory_ / "there/a.gz"));
  ASSERT_OK(opened);
  Examples found;
  ASSERT_OK((*opened)->read(std::vector<std::uint64_t>{299}, found));
  EXPECT_FLOAT_EQ(found.dense[0], std::log1p(299.0F));
  const auto now = indexes_in(directory_ / "there/.antdt-index");
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(std::filesystem::last_write_time(now[0]), written);
  struct stat info {};
  ASSERT_EQ(::stat(now[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0444U, 0444U);
}

TEST_F(PackedDataTest, WhereNothingCanBeWrittenBesideTheDataTheCacheIsNamed) {
  const std::string path = file("a.tsv", rows(3));
  file(".antdt-index", "in its place");
  const auto summary = index(beside(path));
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().message, HasSubstr("[data] index = \"cache\""));
}

TEST_F(PackedDataTest, LinesAreRecordsAsTheyAre) {
  DataConfig lines;
  lines.format = "lines";
  lines.paths = {file("a.gz", gzip("first\n\nthird\r\n")), file("b", "\"1,2\n")};
  Opening opening;
  auto made = ensure_index(lines, cache(), nullptr, opening);
  ASSERT_OK(made);
  auto opened = LineFiles::open(std::move(*made));
  ASSERT_OK(opened);
  ASSERT_EQ(opened->records(), 4U);
  for (const auto& [record, text] : {std::pair{3, "\"1,2"}, {1, ""}, {2, "third"}, {0, "first"}}) {
    EXPECT_EQ(*opened->line(static_cast<std::uint64_t>(record)), text);
  }
  EXPECT_FALSE(opened->line(4));
}

}  // namespace
}  // namespace antdt::data
