// A reader of a program's own, adapted to the trainer: what it gives is checked before a model sees
// it.
#include "trainer/kit/own_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace antdt::trainer {
namespace {

class GivesLabels final : public kit::Reader {
 public:
  GivesLabels(std::uint32_t classes, std::vector<float> labels)
      : classes_(classes), labels_(std::move(labels)) {}
  [[nodiscard]] std::uint64_t records() const override { return labels_.size(); }
  [[nodiscard]] kit::DataShape shape() const override {
    kit::DataShape shape;
    shape.classes = classes_;
    shape.columns = {{"labels", torch::kFloat32, {}}};
    return shape;
  }
  void read(std::span<const std::uint64_t> record_numbers, kit::Tensors& rows) override {
    auto* const to = rows.at("labels").data_ptr<float>();
    for (std::size_t i = 0; i < record_numbers.size(); ++i) to[i] = labels_.at(record_numbers[i]);
  }

 private:
  std::uint32_t classes_;
  std::vector<float> labels_;
};

// Reads records 1 and 2 of four.
Status read_two_labels(std::uint32_t classes, std::vector<float> labels) {
  const auto reader =
      adapt_reader("digits", std::make_unique<GivesLabels>(classes, std::move(labels))).value();
  data::Examples read;
  return reader->read(std::vector<std::uint64_t>{1, 2}, read);
}

TEST(OwnReader, GivesEachRecordALabelOfItsClasses) {
  EXPECT_TRUE(read_two_labels(3, {9, 0, 2, 9}));
  const Status above = read_two_labels(3, {0, 2, 3, 0});
  ASSERT_FALSE(above);
  EXPECT_EQ(above.error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(
      above.error().message,
      "reader 'digits' gave record 2 the label 3: its shape has 3 classes, so labels are 0 to "
      "2");
  for (const float wrong : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(read_two_labels(3, {0, wrong, 2, 0})) << wrong;
  }
}

TEST(OwnReader, GivesAnyLabelThatIsNoIndex) {
  EXPECT_TRUE(read_two_labels(1, {0, -7, 1e9F, 0})) << "numbers to predict";
  EXPECT_TRUE(read_two_labels(2, {0, 0.25F, 1, 0})) << "the share of one of two classes";
}

}  // namespace
}  // namespace antdt::trainer
