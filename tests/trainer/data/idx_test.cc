#include <gmock/gmock.h>

#include "tests/trainer/data/testing.h"

namespace antdt::data {
namespace {

using ::testing::HasSubstr;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// An IDX file of unsigned bytes: `values` in these dimensions.
std::string idx(const std::vector<std::uint32_t>& dimensions, const std::string& values) {
  std::string bytes("\0\0\x08", 3);
  bytes.push_back(static_cast<char>(dimensions.size()));
  for (const std::uint32_t d : dimensions) bytes += big_endian(d);
  return bytes + values;
}

class IdxTest : public DataTest {
 protected:
  std::string images(const std::string& image_bytes, const std::string& label_bytes) {
    return config("idx", file("images", image_bytes),
                  R"(, "labels": [")" + file("labels", label_bytes) + "\"]");
  }
  std::string problem(const std::string& image_bytes, const std::string& label_bytes) {
    const auto summary = index(images(image_bytes, label_bytes));
    return summary ? "none" : summary.error().message;
  }
};

TEST_F(IdxTest, ImagesAreReadInAnyOrderWithPixelsFromZeroToOne) {
  auto opened = reader(images(idx({2, 1, 2}, std::string("\x00\xff\x33\x66", 4)),
                              idx({2}, std::string("\x03\x01", 2))));
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->records(), 2U);
  EXPECT_EQ((*opened)->shape().channels, 1U);
  EXPECT_EQ((*opened)->shape().height, 1U);
  EXPECT_EQ((*opened)->shape().width, 2U);
  EXPECT_EQ((*opened)->shape().classes, 4U);
  Examples examples;
  ASSERT_OK((*opened)->read(std::vector<std::uint64_t>{1, 0}, examples));
  EXPECT_EQ(examples.dense, (std::vector<float>{0.2F, 0.4F, 0.0F, 1.0F}));
  EXPECT_EQ(examples.labels, (std::vector<float>{1, 3}));
}

TEST_F(IdxTest, ImagesWithChannelsHaveFourDimensions) {
  auto opened = reader(images(idx({1, 3, 1, 1}, "abc"), idx({1}, std::string(1, '\0'))));
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->shape().channels, 3U);
  EXPECT_EQ((*opened)->shape().dense_width, 3U);
}

TEST_F(IdxTest, FilesThatDoNotFitAreErrorsThatSayWhy) {
  const std::string good_labels = idx({1}, "a");
  EXPECT_THAT(problem(idx({1, 2, 2}, "abc"), good_labels), HasSubstr("cut short"));
  EXPECT_THAT(problem("hello world", good_labels), HasSubstr("not an IDX file"));
  EXPECT_THAT(problem(idx({2, 1, 1}, "ab"), good_labels), HasSubstr("2 images, but"));
  EXPECT_THAT(problem(idx({1, 1}, "a"), good_labels), HasSubstr("images have 3 or 4"));
  EXPECT_THAT(problem("\x1f\x8b\x08", good_labels), HasSubstr("gunzip"));
  EXPECT_THAT(problem(idx({0xffffffff, 0xffffffff, 0xffffffff}, "a"), good_labels),
              HasSubstr("dimension"));
}

TEST_F(IdxTest, ImagesWithoutALabelFileAreRefused) {
  const auto summary = index(config("idx", file("images", idx({1, 1, 1}, "a"))));
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().message, HasSubstr("one label file for each"));
}

}  // namespace
}  // namespace antdt::data
