// Programs and the library may be of different releases: a structure is as large as the program's
// header made it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "trainer/c_api/handle.h"

namespace antdt::capi {

namespace {

// A structure as the first release had it, and as this one has it.
struct First {
  std::uint32_t struct_size;
  std::uint32_t number;
};
struct Grown {
  std::uint32_t struct_size;
  std::uint32_t number;
  std::uint64_t added;
};
// What a program of the first release has in memory: nothing of it lies behind its structure.
struct Program {
  First first{sizeof(First), 7};
  std::uint64_t behind = 0x5afe5afe5afe5afe;
};
// A newer program, whose header has a field more than this library knows.
struct Newer {
  Grown grown{sizeof(Newer), 7, 8};
  std::uint64_t unknown = 9;
};

}  // namespace

template <>
inline constexpr std::size_t kFirstSize<Grown> = sizeof(First);

namespace {

using ::testing::HasSubstr;

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
Grown* as_grown(Program& program) { return reinterpret_cast<Grown*>(&program.first); }

TEST(StructSizeTest, WhatAnOlderProgramDoesNotHaveIsZero) {
  Program program;
  const auto taken = copy_in("antdt_f", "grown", as_grown(program));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->number, 7U);
  EXPECT_EQ(taken->added, 0U);
}

TEST(StructSizeTest, WhatAnOlderProgramDoesNotHaveIsNotWritten) {
  Program program;
  ASSERT_EQ(copy_out("antdt_f", "grown", Grown{0, 5, 6}, as_grown(program)), ANTDT_OK);
  EXPECT_EQ(program.first.number, 5U);
  EXPECT_EQ(program.first.struct_size, sizeof(First));
  EXPECT_EQ(program.behind, Program().behind);
}

TEST(StructSizeTest, WhatANewerProgramHasBesidesIsLeftAlone) {
  Newer newer;
  const auto taken = copy_in("antdt_f", "grown", &newer.grown);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->added, 8U);
  ASSERT_EQ(copy_out("antdt_f", "grown", Grown{0, 5, 6}, &newer.grown), ANTDT_OK);
  EXPECT_EQ(newer.grown.added, 6U);
  EXPECT_EQ(newer.unknown, 9U);
}

TEST(StructSizeTest, ASizeThatNoReleaseHadIsRefusedWithTheOneToSet) {
  Program program;
  program.first.struct_size = sizeof(First) - 1;
  const auto taken = copy_in("antdt_f", "grown", as_grown(program));
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message,
              HasSubstr("antdt_f: grown.struct_size is 7; set it to the size "
                        "of the structure, 16"));
  EXPECT_FALSE(copy_in<Grown>("antdt_f", "grown", nullptr));
}

// A field that is added to one of these makes this fail: specialize kFirstSize with the number
// here.
TEST(StructSizeTest, TheSizesOfTheFirstReleaseAreKept) {
  EXPECT_EQ(kFirstSize<antdt_options>, 80U);
  EXPECT_EQ(kFirstSize<antdt_about>, 56U);
  EXPECT_EQ(kFirstSize<antdt_part>, 48U);
  EXPECT_EQ(kFirstSize<antdt_order>, 128U);
  EXPECT_EQ(kFirstSize<antdt_metrics>, 56U);
  EXPECT_EQ(kFirstSize<antdt_evaluation>, 48U);
  EXPECT_EQ(kFirstSize<antdt_work>, 32U);
  EXPECT_EQ(kFirstSize<antdt_trace_state>, 72U);
}

}  // namespace
}  // namespace antdt::capi
