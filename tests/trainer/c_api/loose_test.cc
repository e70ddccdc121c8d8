// The loose level of libantdt.so, in a world of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/c_api/program.h"

namespace antdt {
namespace {

using testing::Each;
using testing::HasSubstr;

TEST(LooseLevel, GivesEachRecordOnceAnEpochUntilTheJobIsOver) {
  antdt_options options = alone(1000);
  options.epochs = 2;
  options.eval_records = 100;
  antdt_loose* loose = nullptr;
  ASSERT_EQ(antdt_loose_open(&options, &loose), ANTDT_OK) << antdt_last_error();
  std::vector<int> trained(1000), evaluated(100);
  antdt_work work{};
  work.struct_size = sizeof(work);
  int said = antdt_loose_next(loose, 64, &work, kPatience);
  while (said == ANTDT_OK) {
    EXPECT_LE(work.count, 64U);
    for (std::uint64_t i = 0; i < work.count; ++i) {
      ++(work.evaluation != 0 ? evaluated : trained).at(work.records[i]);
    }
    EXPECT_EQ(antdt_loose_report(loose, 0, 0.001, 0), ANTDT_OK);
    said = antdt_loose_next(loose, 64, &work, kPatience);
  }
  EXPECT_EQ(said, ANTDT_ENDED);
  EXPECT_THAT(trained, Each(2));
  EXPECT_THAT(evaluated, Each(2));
  EXPECT_EQ(antdt_loose_next(loose, 64, &work, 0), ANTDT_ENDED) << "and stays so";
  antdt_loose_close(loose);
}

TEST(LooseLevel, WrongCallsAreRefused) {
  antdt_loose* loose = nullptr;
  const antdt_options options = alone(10);
  ASSERT_EQ(antdt_loose_open(&options, &loose), ANTDT_OK);
  antdt_work work{};
  EXPECT_EQ(antdt_loose_next(loose, 1, &work, 0), ANTDT_USAGE);
  EXPECT_THAT(antdt_last_error(), HasSubstr("work.struct_size"));
  work.struct_size = sizeof(work);
  EXPECT_EQ(antdt_loose_next(loose, 0, &work, 0), ANTDT_USAGE);
  EXPECT_THAT(antdt_last_error(), HasSubstr("max_records is 0"));
  EXPECT_EQ(antdt_loose_next(nullptr, 1, &work, 0), ANTDT_USAGE);
  EXPECT_EQ(antdt_loose_skip(loose, 3, "torn"), ANTDT_USAGE);
  EXPECT_THAT(antdt_last_error(), HasSubstr("record 3 is not one of the work in hand"));
  ASSERT_EQ(antdt_loose_next(loose, 1, &work, kPatience), ANTDT_OK);
  EXPECT_EQ(antdt_loose_skip(loose, work.records[0], "torn"), ANTDT_OK);
  EXPECT_EQ(antdt_loose_next(loose, 1, &work, kPatience), ANTDT_OK) << antdt_last_error();
  antdt_loose_close(loose);
  antdt_loose_close(nullptr);
}

}  // namespace
}  // namespace antdt
