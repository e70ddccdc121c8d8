// What a checkpoint is as arrays of NumPy's.
#include "launcher/model/model_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/os/fs.h"
#include "trainer/ps/rows/slice_image.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<T> numbers_of(const std::string& path) {
  const auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  const std::size_t begin = text->find('\n') + 1;
  std::vector<T> numbers((text->size() - begin) / sizeof(T));
  std::memcpy(numbers.data(), text->data() + begin, numbers.size() * sizeof(T));
  return numbers;
}

std::string bytes_of(const std::vector<float>& floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

class ModelExportTest : public testing::Test {
 protected:
  ModelExportTest() {
    EXPECT_TRUE(make_directories(from));
    EXPECT_TRUE(make_directories(out));
  }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(from + "/" + name, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(from)) names.push_back(entry.path().filename());
    return names;
  }
  Result<ModelContent> content() {
    ANTDT_TRY(const auto files, CheckpointFiles::open(from, names()));
    return content_of(files);
  }
  Result<Json> exported(const std::function<bool()>& stopped = [] { return false; }) {
    ANTDT_TRY(const auto files, CheckpointFiles::open(from, names()));
    ANTDT_TRY(const auto content, content_of(files));
    return write_model(files, content, {"ctr-01", "deepfm", "s7", Step{7}}, out, stopped);
  }
  // Expects that nothing can be exported, and returns the reason.
  std::string refusal() {
    const auto found = content();
    EXPECT_FALSE(found);
    return found ? "" : found.error().message;
  }
  [[nodiscard]] Json parsed_index() const {
    const auto text = read_file(out + "/index.json");
    return Json::parse(text.value_or(""));
  }

  TempDir dir;
  std::string from = dir / "checkpoint";
  std::string out = dir / "out";
};

TEST_F(ModelExportTest, ATallyIsOneArrayOfItsRecords) {
  write("tally.f32", bytes_of({2, 2, 1}));
  write("tally.json", "{}");
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->dump(),
            R"({"schema":1,"job":"ctr-01","model":"deepfm","checkpoint":"s7","step":7,)"
            R"("parameters":[{"name":"tally","shape":[3],"file":"tally.npy"}],"tables":[]})");
  EXPECT_EQ(parsed_index(), *index);
  EXPECT_THAT(numbers_of<float>(out + "/tally.npy"), ElementsAre(2, 2, 1));
}

// ---- the parts of a program on libantdt

class PartsExportTest : public ModelExportTest {
 protected:
  void describe(const std::string& dtype, int shape, int first) {
    Json part{{"name", "p"}, {"dtype", dtype}, {"shape", {shape}}, {"first", first}, {"bytes", 0}};
    write("parts.json", Json{{"schema", 1}, {"step", 7}, {"parts", {part}}}.dump());
  }
};

TEST_F(PartsExportTest, EachPartIsAnArrayOfItsType) {
  const double high[] = {2.5, -1};
  write("parts.bin",
        bytes_of({1, 2}) + std::string(reinterpret_cast<const char*>(high), 16) + "ab");
  write("parts.json", R"({"schema": 1, "step": 7, "parts": [
      {"name": "low", "dtype": "float32", "shape": [2], "first": 0, "bytes": 8},
      {"name": "net/high", "dtype": "float64", "shape": [2, 1], "first": 8, "bytes": 16},
      {"name": "state", "dtype": "bytes", "shape": [2], "first": 24, "bytes": 2}]})");
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)["parameters"].dump(),
            R"([{"name":"low","shape":[2],"file":"low.npy"},)"
            R"({"name":"net/high","shape":[2,1],"file":"array-1.npy"},)"
            R"({"name":"state","shape":[2],"file":"state.npy"}])");
  EXPECT_THAT(numbers_of<float>(out + "/low.npy"), ElementsAre(1, 2));
  EXPECT_THAT(numbers_of<double>(out + "/array-1.npy"), ElementsAre(2.5, -1));
  EXPECT_THAT(*read_file(out + "/array-1.npy"), HasSubstr("'descr': '<f8'"));
  EXPECT_THAT(numbers_of<char>(out + "/state.npy"), ElementsAre('a', 'b'));
}

TEST_F(PartsExportTest, ImpossiblePartsAreRefused) {
  write("parts.bin", std::string(16, ' '));
  describe("float64", 3, 0);
  EXPECT_THAT(refusal(), HasSubstr("part 'p' ends behind the file"));
  describe("float64", 1, 9);
  EXPECT_THAT(refusal(), HasSubstr("part 'p' ends behind the file"));
  describe("float64", 1, 17);
  EXPECT_THAT(refusal(), HasSubstr("part 'p' ends behind the file"));
  describe("complex", 1, 0);
  EXPECT_THAT(refusal(), HasSubstr("unknown type 'complex'"));
  write("parts.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("parts.json cannot be read"));
}

// ---- the state of training by all-reduce

// Two arrays of 32 floats, 0.0 to 63.0.
class StateExportTest : public ModelExportTest {
 protected:
  StateExportTest() {
    std::vector<float> floats(64);
    std::iota(floats.begin(), floats.end(), 0.0F);
    write("state.bin", bytes_of(floats));
    write("state.json", layout.dump());
  }
  Json layout = Json::parse(R"({"schema": 1, "step": 7, "optimizer_steps": 7, "floats": 32,
      "arrays": ["parameters", "optimizer0"],
      "parameters": [{"name": "out.weight", "sizes": [2, 3], "first": 16},
                     {"name": "bias", "sizes": [1], "first": 0}]})");
};

TEST_F(StateExportTest, HasAnArrayAParameterWithItsShapeAndNothingOfTheOptimizer) {
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)["parameters"].dump(),
            R"([{"name":"out.weight","shape":[2,3],"file":"out.weight.npy"},)"
            R"({"name":"bias","shape":[1],"file":"bias.npy"}])");
  EXPECT_THAT(numbers_of<float>(out + "/out.weight.npy"), ElementsAre(16, 17, 18, 19, 20, 21));
  EXPECT_THAT(numbers_of<float>(out + "/bias.npy"), ElementsAre(0));
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 3);
}

TEST_F(StateExportTest, TheParametersAreWhereTheListOfArraysSays) {
  layout["arrays"] = {"optimizer0", "parameters"};
  write("state.json", layout.dump());
  ASSERT_TRUE(exported());
  EXPECT_THAT(numbers_of<float>(out + "/bias.npy"), ElementsAre(32));
}

TEST_F(StateExportTest, ANameThatIsNoFileNameBecomesANumberAndStaysInTheIndex) {
  layout["parameters"][0]["name"] = "../../out";
  layout["parameters"][1]["name"] = "array-0";
  write("state.json", layout.dump());
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)["parameters"][0]["name"], "../../out");
  EXPECT_EQ((*index)["parameters"][0]["file"], "array-0.npy");
  EXPECT_EQ((*index)["parameters"][1]["file"], "array-1.npy");
}

TEST_F(StateExportTest, ALayoutThatDoesNotFitItsArraysIsRefused) {
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"/floats", 31},
      {"/floats", "many"},
      {"/arrays", Json::array()},
      {"/arrays", {"optimizer0", "optimizer1"}},
      {"/parameters/0/first", 27},
      {"/parameters/0/first", 33},
      {"/parameters/0/sizes", {1U << 31U, 1U << 31U, 1U << 31U}},
      {"/parameters/0/sizes", {-1}},
      {"/parameters", 3},
  };
  for (const auto& [where, value] : wrong) {
    Json changed = layout;
    changed[Json::json_pointer(where)] = value;
    write("state.json", changed.dump());
    EXPECT_THAT(refusal(), HasSubstr("state.json cannot be read")) << where << " " << value;
  }
}

TEST_F(StateExportTest, WithoutItsArraysItIsRefused) {
  fs::remove(from + "/state.bin");
  EXPECT_THAT(refusal(), HasSubstr("there is no state.bin"));
}

TEST_F(ModelExportTest, FilesOfAProgramAreNotReadAndTheMessageSaysSo) {
  write("model.pt", "weights");
  const auto found = content();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(found.error().message, HasSubstr("only it can read: model.pt"));
}

// ---- parameter servers

constexpr std::uint64_t kKeys = 3000;

ps::TableSpec table_of(const std::string& name, std::uint32_t width,
                       ps::UpdateRule::Kind kind = ps::UpdateRule::Kind::kAdam) {
  ps::TableSpec table;
  table.name = name;
  table.width = width;
  table.rule.kind = kind;
  return table;
}

// Value i of the row of a key.
float value_of(std::uint64_t key, std::uint32_t i) {
  return static_cast<float>(key % 10'000) + 0.125F * static_cast<float>(i);
}

class SliceExportTest : public ModelExportTest {
 protected:
  static void fill(ps::Store& store, std::uint32_t table, const std::vector<std::uint64_t>& keys) {
    const std::uint32_t width = store.tables()[table].width;
    std::vector<float> values;
    for (const std::uint64_t key : keys) {
      for (std::uint32_t i = 0; i < width; ++i) values.push_back(value_of(key, i));
    }
    store.put_new(table, keys, values);
  }
  void write_slice(const ps::Store& store, std::uint32_t slice) {
    std::string bytes;
    ps::encode_slice(store, slice, [&](std::string_view piece) { bytes += piece; });
    write(ps::slice_file_name(slice), bytes);
  }
  void write_slices(const ps::Store& store) {
    for (std::uint32_t slice = 0; slice < ps::kSlices; ++slice) write_slice(store, slice);
  }
  // Spread over all of the number space, as hashes are.
  static std::vector<std::uint64_t> keys() {
    std::vector<std::uint64_t> keys(kKeys);
    for (std::uint64_t i = 0; i < kKeys; ++i) keys[i] = i * 0x9e3779b97f4a7c15ULL;
    std::ranges::sort(keys);
    return keys;
  }
  static std::vector<std::uint64_t> blocks(std::uint64_t count) {
    std::vector<std::uint64_t> keys(count);
    std::iota(keys.begin(), keys.end(), 0);
    return keys;
  }
  std::string slice_path(std::uint32_t slice) { return from + "/" + ps::slice_file_name(slice); }
};

TEST_F(SliceExportTest, EachRowOfATableIsThereOnceWithItsValuesAndWithoutItsOptimizer) {
  ps::Store store({table_of("table", 5), table_of("first_order", 1)}, 1);
  fill(store, 0, keys());
  fill(store, 1, {1, 2});
  write_slices(store);
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)["tables"].dump(),
            R"([{"name":"table","width":5,"rows":3000,"keys_file":"table.keys.npy",)"
            R"("values_file":"table.values.npy"},)"
            R"({"name":"first_order","width":1,"rows":2,"keys_file":"first_order.keys.npy",)"
            R"("values_file":"first_order.values.npy"}])");
  std::vector<std::uint64_t> found = numbers_of<std::uint64_t>(out + "/table.keys.npy");
  const std::vector<float> values = numbers_of<float>(out + "/table.values.npy");
  ASSERT_EQ(values.size(), found.size() * 5);
  for (std::size_t row = 0; row < found.size(); ++row) {
    for (std::uint32_t i = 0; i < 5; ++i) {
      ASSERT_EQ(values[5 * row + i], value_of(found[row], i)) << row << " " << i;
    }
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, keys());
}

TEST_F(SliceExportTest, TheDenseTableIsOneArrayInTheOrderOfItsBlocks) {
  ps::Store store({table_of("table", 2), table_of("dense", 1024)}, 1);
  fill(store, 1, blocks(100));
  write_slices(store);
  const auto index = exported();
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ((*index)["parameters"].dump(),
            R"([{"name":"dense","shape":[102400],"file":"dense.npy"}])");
  EXPECT_EQ((*index)["tables"].size(), 1U);
  EXPECT_EQ((*index)["tables"][0]["rows"], 0);
  const std::vector<float> values = numbers_of<float>(out + "/dense.npy");
  ASSERT_EQ(values.size(), 102400U);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], value_of(i / 1024, i % 1024)) << i;
  }
}

TEST_F(SliceExportTest, RowsLongerThanAPieceOfTheCopyComeWhole) {
  constexpr std::uint32_t kWidth = 300'000;
  ps::Store store({table_of("table", kWidth, ps::UpdateRule::Kind::kSum)}, 1);
  fill(store, 0, {3, 4, 5});
  write_slices(store);
  ASSERT_TRUE(exported());
  const auto found = numbers_of<std::uint64_t>(out + "/table.keys.npy");
  const std::vector<float> values = numbers_of<float>(out + "/table.values.npy");
  ASSERT_EQ(found.size(), 3U);
  ASSERT_EQ(values.size(), std::size_t{3} * kWidth);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(values[row * kWidth + kWidth - 1], value_of(found[row], kWidth - 1));
  }
}

TEST_F(SliceExportTest, ABlockThatIsMissingIsNamed) {
  ps::Store store({table_of("dense", 1024)}, 1);
  fill(store, 0, {0, 1, 3});
  write_slices(store);
  EXPECT_THAT(refusal(), HasSubstr("block 2 of the dense parameters is missing"));
}

TEST_F(SliceExportTest, ASliceThatIsMissingIsNamed) {
  write_slices(ps::Store({table_of("table", 2)}, 1));
  fs::remove(slice_path(63));
  EXPECT_THAT(refusal(), HasSubstr("slice-63.rows is missing"));
}

TEST_F(SliceExportTest, SlicesOfDifferentModelsAreNotMixed) {
  write_slices(ps::Store({table_of("table", 2)}, 1));
  write_slice(ps::Store({table_of("table", 3)}, 1), 9);
  EXPECT_THAT(refusal(), HasSubstr("slice-09.rows has other tables"));
}

TEST_F(SliceExportTest, ASliceThatIsCutShortTooLongOrAnotherIsRefusedWithItsName) {
  ps::Store store({table_of("table", 2)}, 1);
  fill(store, 0, keys());
  write_slices(store);
  const std::string whole = *read_file(slice_path(5));
  for (std::size_t size = 0; size < whole.size(); size += size < 80 ? 1 : 97) {
    write("slice-05.rows", whole.substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr("slice-05.rows")) << size;
  }
  write("slice-05.rows", whole + "x");
  EXPECT_THAT(refusal(), HasSubstr("1 bytes too many"));
  write("slice-05.rows", *read_file(slice_path(6)));
  EXPECT_THAT(refusal(), HasSubstr("holds slice 6"));
  write("slice-05.rows", std::string(whole.size(), 'x'));
  EXPECT_THAT(refusal(), HasSubstr("is no slice"));
}

TEST_F(SliceExportTest, NumbersOfRowsThatNoFileCouldHoldAreRefused) {
  write_slices(ps::Store({table_of("table", 2)}, 1));
  std::string bytes = *read_file(slice_path(0));
  const std::size_t rows_at = 16 + 8 + 4 + 5 + 8;
  for (std::size_t i = 0; i < 8; ++i) bytes.at(rows_at + i) = '\xff';
  write("slice-00.rows", bytes);
  EXPECT_THAT(refusal(), HasSubstr("slice-00.rows is cut short"));
}

TEST_F(SliceExportTest, TheRoomThatIsNeededIsKnownBefore) {
  ps::Store store({table_of("table", 5), table_of("dense", 1024)}, 1);
  fill(store, 0, keys());
  fill(store, 1, blocks(3));
  write_slices(store);
  const auto found = content();
  ASSERT_TRUE(found);
  ASSERT_TRUE(exported());
  std::uint64_t written = 0;
  for (const auto& file : fs::directory_iterator(out)) written += file.file_size();
  EXPECT_EQ(model_bytes(*found), written - fs::file_size(out + "/index.json"));
}

TEST_F(SliceExportTest, StopsWhenItIsAskedTo) {
  ps::Store store({table_of("table", 5)}, 1);
  fill(store, 0, keys());
  write_slices(store);
  int asked = 0;
  const auto index = exported([&] { return ++asked > 10; });
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().kind, ErrorKind::kAborted);
  EXPECT_FALSE(fs::exists(out + "/index.json"));
}

TEST_F(ModelExportTest, ACheckpointThatIsRemovedMeanwhileIsStillRead) {
  write("tally.f32", bytes_of({2, 3}));
  const auto files = CheckpointFiles::open(from, names());
  ASSERT_TRUE(files);
  fs::remove_all(from);
  const auto found = content_of(*files);
  ASSERT_TRUE(found);
  ASSERT_TRUE(write_model(*files, *found, {}, out, [] { return false; }));
  EXPECT_THAT(numbers_of<float>(out + "/tally.npy"), ElementsAre(2, 3));
}

}  // namespace
}  // namespace antdt::cli
