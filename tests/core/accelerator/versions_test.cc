#include "core/accelerator/versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::accelerator {
namespace {

using ::testing::HasSubstr;

TEST(NcclVersions, CodesAreReadAsNcclWritesThem) {
  EXPECT_EQ(version_text(22703), "2.27.3");
  EXPECT_EQ(version_text(23007), "2.30.7");
  EXPECT_EQ(version_text(2804), "2.8.4");  // before 2.9 the code had a digit less
  for (const int code : {2804, 21403, 22602, 23203}) {
    EXPECT_EQ(version_code(version_text(code)), code);
  }
  EXPECT_EQ(version_code("2.26.2.post1"), 22602);
  EXPECT_EQ(version_code("2"), 0);
  EXPECT_EQ(version_code(""), 0);
  EXPECT_EQ(cuda_version_text(12040), "12.4");
  EXPECT_EQ(cuda_version_text(11080), "11.8");
}

TEST(NcclVersions, KnownReleasesAreTakenAndOthersNamed) {
  for (const int known : {22602, 22605, 22703, 22809, 22907, 23007, 23203}) {
    EXPECT_TRUE(check_version(known)) << known;
  }
  for (const int old : {2804, 21403, 22403, 22501}) {
    const Status checked = check_version(old);
    ASSERT_FALSE(checked) << old;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(checked.error().message, HasSubstr(version_text(old) + " is too old"));
    EXPECT_THAT(checked.error().message, HasSubstr("nvidia-nccl-cu13 for CUDA 13"));
  }
  const Status checked = check_version(kNewestVersion + 1);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("is newer"));
  EXPECT_THAT(checked.error().message, HasSubstr(kVersionsText));
}

TEST(NcclVersions, OldCudaIsRefused) {
  EXPECT_TRUE(check_cuda_version(11000));
  EXPECT_TRUE(check_cuda_version(13000));
  EXPECT_FALSE(check_cuda_version(10020));
}

}  // namespace
}  // namespace antdt::accelerator
