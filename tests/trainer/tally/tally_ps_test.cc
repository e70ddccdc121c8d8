// The counters as rows on servers: small whole numbers, whichever worker pushes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/ps/rows/store.h"
#include "trainer/tally/ps_tally.h"

namespace antdt::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kFewRecords = 1000;

data::DataShape few_numbers(std::uint64_t records = kFewRecords) {
  data::DataShape shape;
  shape.id_width = 1;
  shape.id_rows = records;
  shape.classes = 1;
  return shape;
}

data::Examples examples_of(std::vector<std::int64_t> records) {
  data::Examples out;
  out.count = records.size();
  out.labels.assign(records.size(), 1.0F);
  out.ids = std::move(records);
  return out;
}

// A model and the one server that holds its table.
class Tally {
 public:
  explicit Tally(std::uint32_t parameters_a_record) {
    auto made = make_tally_ps_model(few_numbers(), parameters_a_record);
    EXPECT_TRUE(made) << made.error().message;
    model = std::move(*made);
    EXPECT_EQ(model->tables().size(), 1U);
    const wire::PsTable& table = model->tables().front();
    EXPECT_EQ(table.name, "tally");
    EXPECT_EQ(table.rule, "sum");
    EXPECT_EQ(table.init, "zero");
    EXPECT_THAT(model->first_values(), IsEmpty());
    ps::TableSpec spec;
    spec.width = table.width;
    spec.rule.kind = ps::UpdateRule::Kind::kSum;
    store.emplace(std::vector{spec}, 1);
  }

  // The batch's gradient, applied as a step of that weight.
  void train(const data::Examples& batch, double weight) {
    const auto rows = model->rows_of(batch);
    const auto computed = model->compute(batch, rows, {read(rows.front().keys)});
    ASSERT_TRUE(computed) << computed.error().message;
    EXPECT_EQ(computed->sums.weight, static_cast<double>(batch.count));
    EXPECT_EQ(computed->sums.loss, 0);
    for (const ps::TableGradient& g : computed->gradients) {
      store->update(g.table, g.gradient.keys, g.gradient.values, static_cast<float>(1 / weight));
    }
  }

  [[nodiscard]] std::vector<float> read(const std::vector<std::uint64_t>& keys) {
    std::vector<float> values(keys.size());
    store->read(0, keys, reinterpret_cast<char*>(values.data()));
    return values;
  }

  std::unique_ptr<PsModel> model;
  std::optional<ps::Store> store;
};

TEST(PsTally, CountsEachOccurrenceOfARecordOnceWhateverTheWeightOfTheStep) {
  Tally tally(1);
  tally.train(examples_of({7, 999, 3, 7, 0}), 41);
  tally.train(examples_of({7}), 83);
  EXPECT_THAT(tally.read({0, 1, 3, 7, 999}), ElementsAre(1, 0, 1, 3, 1));
  EXPECT_EQ(tally.store->rows(), 5U) << "row 1 was made by looking, the others by training";
}

TEST(PsTally, WithThreeRowsCountsARecordInEachOfThem) {
  Tally tally(3);
  EXPECT_THAT(tally.model->rows_of(examples_of({2, 0, 2})).front().keys,
              ElementsAre(0, 1, 2, 6, 7, 8));
  tally.train(examples_of({2, 0, 2}), 3);
  EXPECT_THAT(tally.read({0, 1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(1, 1, 1, 0, 0, 0, 2, 2, 2));
}

TEST(PsTally, ANumberThatIsNoRecordIsAnErrorAndMakesNoRow) {
  Tally tally(3);
  for (const std::int64_t record : {std::int64_t{kFewRecords}, std::int64_t{-1}}) {
    const data::Examples batch = examples_of({5, record});
    const auto rows = tally.model->rows_of(batch);
    EXPECT_THAT(rows.front().keys, ElementsAre(15, 16, 17));
    EXPECT_FALSE(tally.model->compute(batch, rows, {{0, 0, 0}}));
  }
}

TEST(PsTally, RowsOfAnotherBatchAreAnError) {
  Tally tally(3);
  const data::Examples batch = examples_of({5});
  for (const std::vector<std::uint64_t>& keys :
       {std::vector<std::uint64_t>{}, {12, 13, 14}, {15, 16}, {15, 17, 18}}) {
    EXPECT_FALSE(tally.model->compute(batch, {{0, keys}}, {std::vector<float>(keys.size())}));
  }
  EXPECT_FALSE(tally.model->compute(batch, {}, {}));
}

TEST(PsTally, EvaluationCountsRecordsAndHasNoLoss) {
  Tally tally(1);
  const data::Examples batch = examples_of({1, 2, 3});
  const auto partial = tally.model->evaluate(batch, tally.model->rows_of(batch), {{0, 0, 0}});
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->records, 3U);
  EXPECT_EQ(partial->loss_sum, 0);
}

TEST(PsTallyDeathTest, APoisonedRecordEndsTheProcessAndNoOtherDoes) {
  const auto model = make_tally_ps_model(few_numbers(), 1, 7);
  ASSERT_TRUE(model) << model.error().message;
  const auto compute = [&](const data::Examples& batch) {
    return (*model)->compute(batch, (*model)->rows_of(batch), {{0, 0}});
  };
  EXPECT_TRUE(compute(examples_of({6, 8})));
  EXPECT_DEATH(static_cast<void>(compute(examples_of({6, 7}))), "record 7 is poison");
}

TEST(PsTally, DataOfAnotherShapeAreRefused) {
  data::DataShape images;
  images.dense_width = 64;
  for (const auto& [rows, name] : {std::pair{1U, "'tally'"}, std::pair{3U, "'tally3'"}}) {
    const auto model = make_tally_ps_model(images, rows);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(model.error().message, HasSubstr(name));
    EXPECT_THAT(model.error().message, HasSubstr("data.format = \"index\""));
  }
  EXPECT_FALSE(make_tally_ps_model(few_numbers(0), 1));
}

}  // namespace
}  // namespace antdt::trainer
