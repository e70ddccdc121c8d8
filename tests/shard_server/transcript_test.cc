// Each file of transcripts/ is a script with the effects expected under each
// event. To accept what the ledger does now, read it, then run with
// ANTDT_ACCEPT_TRANSCRIPTS=1.
#include "transcript.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace antdt::shard_server {
namespace {

std::vector<std::string> transcripts() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ANTDT_TRANSCRIPTS)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TranscriptTest : public testing::TestWithParam<std::string> {};

TEST_P(TranscriptTest, HasTheEffectsExpected) {
  const std::string path = std::string(ANTDT_TRANSCRIPTS) + "/" + GetParam() + ".txt";
  std::ostringstream script;
  script << std::ifstream(path).rdbuf();
  ASSERT_FALSE(script.str().empty()) << path;
  const std::string now = run_transcript(script.str());
  if (std::getenv("ANTDT_ACCEPT_TRANSCRIPTS") != nullptr) std::ofstream(path) << now;
  EXPECT_EQ(now, script.str());
}

INSTANTIATE_TEST_SUITE_P(Ledger, TranscriptTest, testing::ValuesIn(transcripts()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::shard_server
