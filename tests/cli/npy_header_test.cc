// The header of a file of NumPy's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/model/model_npy.h"

namespace antdt::cli {
namespace {

using testing::HasSubstr;

TEST(NpyHeader, IsTheMagicTheVersionAndADictionaryPaddedTo64Bytes) {
  const std::string header = npy_header(NpyType::kFloat32, {3, 4});
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(static_cast<unsigned char>(header[8]) + 256 * header[9],
            static_cast<int>(header.size()) - 10);
  EXPECT_EQ(header.substr(10, header.find_last_not_of(" \n") - 9),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  EXPECT_EQ(header.back(), '\n');
}

TEST(NpyHeader, HasPythonsTuples) {
  EXPECT_THAT(npy_header(NpyType::kUint64, {7}), HasSubstr("'descr': '<u8'"));
  EXPECT_THAT(npy_header(NpyType::kUint64, {7}), HasSubstr("'shape': (7,), }"));
  EXPECT_THAT(npy_header(NpyType::kFloat32, {}), HasSubstr("'shape': (), }"));
  EXPECT_THAT(npy_header(NpyType::kFloat32, {10'000'000, 16, 1}),
              HasSubstr("'shape': (10000000, 16, 1), }"));
}

TEST(NpyHeader, IsAlignedWhateverTheLengthOfTheShape) {
  std::vector<std::uint64_t> shape;
  for (int i = 0; i < 40; ++i) {
    shape.push_back(1'000'000);
    const std::string header = npy_header(NpyType::kFloat32, shape);
    EXPECT_EQ(header.size() % 64, 0U) << i;
    EXPECT_EQ(static_cast<unsigned char>(header[8]) + 256 * static_cast<unsigned char>(header[9]),
              static_cast<int>(header.size()) - 10);
  }
}

}  // namespace
}  // namespace antdt::cli
