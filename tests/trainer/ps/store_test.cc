// Rows, update rules and the sum of several gradients.
#include "trainer/ps/rows/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "trainer/ps/rows/gradient_merge.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"

namespace antdt::ps::store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

UpdateRule rule(UpdateRule::Kind kind, float rate = 0.1F) {
  UpdateRule r;
  r.kind = kind;
  r.learning_rate = rate;
  return r;
}

TableSpec table(UpdateRule::Kind kind, std::uint32_t width) {
  TableSpec spec;
  spec.name = "t";
  spec.width = width;
  spec.rule = rule(kind);
  return spec;
}

std::vector<float> read(Store& store, std::uint32_t table, std::vector<std::uint64_t> keys) {
  std::vector<float> values(keys.size() * store.tables()[table].width);
  store.read(table, keys, reinterpret_cast<char*>(values.data()));
  return values;
}

// ---- RowTable

TEST(RowTable, FindsEveryRowThatWasAddedAndNoOther) {
  RowTable rows(3, 2);
  std::map<std::uint64_t, std::uint32_t> expected;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t key = i * 0x9e3779b97f4a7c15ULL;
    const std::uint32_t row = rows.add(key, RowTable::hash(key));
    rows.values(row)[2] = static_cast<float>(i);
    rows.state(row)[1] = -static_cast<float>(i);
    expected[key] = row;
  }
  EXPECT_EQ(rows.rows(), 5000U);
  for (const auto& [key, row] : expected) {
    ASSERT_EQ(rows.find(key, RowTable::hash(key)), row);
    ASSERT_EQ(rows.key(row), key);
    ASSERT_EQ(rows.values(row)[2], -rows.state(row)[1]);
  }
  for (std::uint64_t key = 1; key < 1000; ++key) {
    ASSERT_EQ(rows.find(key, RowTable::hash(key)), RowTable::kNone);
  }
}

TEST(RowTable, ARowTakesWhatItsValuesAndStateNeed) {
  RowTable rows(16, 16);
  for (std::uint64_t key = 0; key < 100'000; ++key) rows.add(key, RowTable::hash(key));
  const double each = static_cast<double>(rows.bytes()) / 100'000;
  EXPECT_GT(each, 8 + 32 * 4);
  EXPECT_LT(each, 8 + 32 * 4 + 24);
}

// ---- update rules

TEST(UpdateRule, SumAddsTheGradientAsItIs) {
  std::vector<float> w{1, 2};
  rule(UpdateRule::Kind::kSum).apply(w, {}, std::vector<float>{1, 3}, 0.125F);
  EXPECT_THAT(w, ElementsAre(2, 5));
}

TEST(UpdateRule, AdagradDividesByTheRootOfTheSumOfSquares) {
  const UpdateRule r = rule(UpdateRule::Kind::kAdagrad, 0.5F);
  std::vector<float> w{0};
  std::vector<float> state(r.state(1));
  r.apply(w, state, std::vector<float>{3}, 1);
  EXPECT_FLOAT_EQ(w[0], -0.5F);
  r.apply(w, state, std::vector<float>{4}, 1);
  EXPECT_FLOAT_EQ(w[0], -0.5F - 0.5F * 4 / 5);
}

TEST(UpdateRule, AdamsFirstStepIsTheLearningRateWhateverTheGradient) {
  const UpdateRule r = rule(UpdateRule::Kind::kAdam, 0.01F);
  for (const float g : {1e-3F, 1.0F, 1e3F}) {
    std::vector<float> w{0};
    std::vector<float> state(r.state(1));
    r.apply(w, state, std::vector<float>{g}, 1);
    EXPECT_NEAR(w[0], -0.01F, 1e-6F) << g;
  }
}

TEST(UpdateRule, FtrlKeepsWhatIsBelowItsL1AtZero) {
  UpdateRule r = rule(UpdateRule::Kind::kFtrl, 0.1F);
  r.l1 = 1;
  std::vector<float> w{0, 0};
  std::vector<float> state(r.state(2));
  r.apply(w, state, std::vector<float>{0.5F, 5}, 1);
  EXPECT_EQ(w[0], 0);
  EXPECT_NEAR(w[1], -(5 - 1) / ((1 + 5.0F) / 0.1F), 1e-6F);
}

TEST(UpdateRule, FtrlGoesOnFromAValueThatWasThereBefore) {
  const UpdateRule r = rule(UpdateRule::Kind::kFtrl, 0.1F);
  std::vector<float> w{2};
  std::vector<float> state(r.state(1));
  r.apply(w, state, std::vector<float>{1e-6F}, 1);
  EXPECT_NEAR(w[0], 2, 1e-4F);
}

TEST(UpdateRule, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto kind = parse_update_rule("rmsprop");
  ASSERT_FALSE(kind);
  EXPECT_THAT(kind.error().message, HasSubstr("adagrad"));
}

// ---- Store

TEST(Store, ARowBeginsAsItsSeedSaysWhoeverAsksFirst) {
  TableSpec spec = table(UpdateRule::Kind::kSgd, 4);
  spec.init = TableSpec::Init::kNormal;
  spec.init_scale = 0.5F;
  Store a({spec}, 7);
  Store b({spec}, 7);
  Store other({spec}, 8);
  read(a, 0, {1, 2, 3});
  EXPECT_EQ(read(a, 0, {2}), read(b, 0, {2}));
  EXPECT_NE(read(a, 0, {2}), read(other, 0, {2}));
}

TEST(Store, NormalRowsHaveTheirDeviation) {
  TableSpec spec = table(UpdateRule::Kind::kSgd, 16);
  spec.init = TableSpec::Init::kNormal;
  spec.init_scale = 0.5F;
  Store store({spec}, 7);
  std::vector<std::uint64_t> keys(10'000);
  std::iota(keys.begin(), keys.end(), 0);
  const auto values = read(store, 0, keys);
  double sum = 0;
  double squares = 0;
  for (const float v : values) {
    sum += v;
    squares += double{v} * v;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(std::sqrt(squares / n), 0.5, 0.005);
}

TEST(Store, AnExistingRowIsNotReplaced) {
  Store store({table(UpdateRule::Kind::kSgd, 2)}, 1);
  store.put_new(0, std::vector<std::uint64_t>{5}, std::vector<float>{1, 2});
  store.put_new(0, std::vector<std::uint64_t>{5, 6}, std::vector<float>{9, 9, 3, 4});
  EXPECT_THAT(read(store, 0, {5, 6}), ElementsAre(1, 2, 3, 4));
}

TEST(Store, UpdatesTheRowsOfTheGradientAndNoOther) {
  Store store({table(UpdateRule::Kind::kSgd, 1), table(UpdateRule::Kind::kSum, 1)}, 1);
  std::vector<std::uint64_t> keys(1000);
  std::iota(keys.begin(), keys.end(), 100);
  store.update(0, keys, std::vector<float>(1000, 2), 0.5F);
  EXPECT_THAT(read(store, 0, {99, 100, 1099, 1100}), ElementsAre(0, -0.1F, -0.1F, 0));
  EXPECT_THAT(read(store, 1, {100}), ElementsAre(0));
}

TEST(Store, UpdatesGoByThePartOfTheLearningRateThatItIsToldButForFtrl) {
  for (const auto kind : {UpdateRule::Kind::kSgd, UpdateRule::Kind::kAdagrad,
                          UpdateRule::Kind::kAdam, UpdateRule::Kind::kFtrl}) {
    Store whole({table(kind, 1)}, 7);
    Store half({table(kind, 1)}, 7);
    half.set_rate(0.5F);
    for (Store* store : {&whole, &half}) {
      store->update(0, std::vector<std::uint64_t>{1}, std::vector<float>{2}, 1);
    }
    const float moved = read(half, 0, {1})[0] / read(whole, 0, {1})[0];
    EXPECT_NEAR(moved, kind == UpdateRule::Kind::kFtrl ? 1 : 0.5, 1e-5) << static_cast<int>(kind);
  }
}

TEST(Store, ItsRowsAreSpreadOverAllSlices) {
  Store store({table(UpdateRule::Kind::kSgd, 1)}, 1);
  std::vector<std::uint64_t> keys(64'000);
  std::iota(keys.begin(), keys.end(), 0);
  read(store, 0, keys);
  for (std::uint32_t s = 0; s < kSlices; ++s) {
    EXPECT_NEAR(static_cast<double>(store.slice(s, 0).rows()), 1000, 200) << s;
  }
}

// ---- merging and bytes

TEST(GradientMerge, IsTheSumOfTheParts) {
  std::mt19937_64 random(3);
  std::vector<Gradient> parts(5);
  std::map<std::uint64_t, std::pair<float, float>> expected;
  for (Gradient& part : parts) {
    for (std::uint64_t key = 0; key < 200; ++key) {
      if (random() % 3 != 0) continue;
      const auto value = static_cast<float>(random() % 100);
      part.keys.push_back(key);
      part.values.insert(part.values.end(), {value, -value});
      expected[key].first += value;
      expected[key].second -= value;
    }
  }
  std::vector<const Gradient*> all;
  for (const Gradient& part : parts) all.push_back(&part);
  const Gradient sum = merge(all, 2);
  ASSERT_EQ(sum.keys.size(), expected.size());
  std::size_t i = 0;
  for (const auto& [key, value] : expected) {
    ASSERT_EQ(sum.keys[i], key);
    ASSERT_EQ(sum.values[2 * i], value.first);
    ASSERT_EQ(sum.values[2 * i + 1], value.second);
    ++i;
  }
}

TEST(GradientMerge, AddsInTheOrderOfTheParts) {
  const Gradient big{{1}, {1e8F}};
  const Gradient small{{1}, {1}};
  const Gradient minus{{1}, {-1e8F}};
  EXPECT_EQ(merge(std::vector{&big, &minus, &small}, 1).values[0], 1);
  EXPECT_EQ(merge(std::vector{&big, &small, &minus}, 1).values[0], 0);
}

TEST(RowBytes, AreReadBackAndCheckedFirst) {
  const std::vector<std::uint64_t> keys{1, 7, 1ULL << 63};
  EXPECT_EQ(*keys_from_bytes(to_bytes(keys)), keys);
  EXPECT_FALSE(keys_from_bytes(to_bytes(keys) + "x"));
  EXPECT_FALSE(keys_from_bytes(to_bytes(std::vector<std::uint64_t>{7, 7})));
  EXPECT_FALSE(keys_from_bytes(to_bytes(std::vector<std::uint64_t>{7, 1})));
  const std::vector<float> values{1.5F, -2};
  EXPECT_EQ(*floats_from_bytes(to_bytes(values), 2), values);
  EXPECT_FALSE(floats_from_bytes(to_bytes(values), 3));
}

// ---- a slice as bytes

struct SliceImage : ::testing::Test {
  static std::vector<TableSpec> tables() {
    TableSpec embedding = table(UpdateRule::Kind::kAdam, 3);
    embedding.name = "embedding";
    embedding.init = TableSpec::Init::kUniform;
    embedding.init_scale = 0.1F;
    return {embedding, table(UpdateRule::Kind::kSgd, 2)};
  }
  static std::string image(const Store& store, std::uint32_t slice) {
    std::string bytes;
    encode_slice(store, slice, [&](std::string_view piece) { bytes += piece; });
    return bytes;
  }
  SliceImage() {
    std::iota(keys.begin(), keys.end(), 1);
    std::vector<float> gradients(keys.size() * 3, 0.5F);
    store.update(0, keys, gradients, 1);
    store.update(0, std::span(keys).first(500), std::span(gradients).first(1500), 2);
    store.update(1, std::span(keys).first(100), std::span(gradients).first(200), 1);
  }
  void expect_refused(const std::string& bytes, const std::string& why) {
    Store other(tables(), 7);
    const Status status = decode_slice(other, 5, bytes);
    ASSERT_FALSE(status) << why;
    EXPECT_THAT(status.error().message, HasSubstr(why));
  }
  std::vector<std::uint64_t> keys = std::vector<std::uint64_t>(20000);
  Store store{tables(), 7};
};

TEST_F(SliceImage, EveryRowComesBackWithItsOptimizersState) {
  Store other(tables(), 8);  // whose new rows would begin with other values
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    const Status status = decode_slice(other, slice, image(store, slice));
    ASSERT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(other.rows(), store.rows());
  const std::vector<float> gradients(keys.size() * 3, 0.25F);
  store.update(0, keys, gradients, 1);
  other.update(0, keys, gradients, 1);
  EXPECT_EQ(read(other, 0, keys), read(store, 0, keys));
  const std::vector<std::uint64_t> few(keys.begin(), keys.begin() + 100);
  EXPECT_EQ(read(other, 1, few), read(store, 1, few));
}

TEST_F(SliceImage, AnImageOfTheWrongLengthIsRefused) {
  const std::string bytes = image(store, 5);
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 16) {
    expect_refused(bytes.substr(0, length), "slice 5 is cut short");
  }
  expect_refused(bytes + "x", "1 bytes too many");
}

TEST_F(SliceImage, TheImageOfAnotherSliceOrModelIsRefused) {
  expect_refused(std::string(100, 'x'), "no slice of parameters");
  expect_refused(image(store, 6), "slice 6 with 2 tables where slice 5 with 2");
  std::vector<TableSpec> wider = tables();
  wider[0].width = 4;
  expect_refused(image(Store(wider, 7), 5), "table 'embedding' of 4 + 9 floats a row");
  wider = tables();
  wider[1].rule.kind = UpdateRule::Kind::kAdagrad;
  expect_refused(image(Store(wider, 7), 5), "resume with the [trainer] section");
}

TEST_F(SliceImage, AKeyThatComesTwiceOrIsOfAnotherSliceIsRefused) {
  const std::string bytes = image(store, 5);
  // The first table's first row follows 24 bytes of header and those of the table.
  const std::size_t first = 24 + 4 + std::string("embedding").size() + 16;
  const std::size_t row = 8 + (3 + 7) * sizeof(float);
  std::string twice = bytes;
  twice.replace(first + row, 8, bytes, first, 8);
  expect_refused(twice, "twice");
  std::string foreign = bytes;
  foreign.replace(first, 8, image(store, 6), first, 8);
  expect_refused(foreign, "of another slice");
}

}  // namespace
}  // namespace antdt::ps::store_test
