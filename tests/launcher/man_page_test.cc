// Compares job.toml(5) with the table of keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/os/fs.h"
#include "core/schema/keys.h"

namespace antdt::launcher {
namespace {

std::string plain(std::string text) {
  for (const auto& [from, to] : {std::pair("\\-", "-"), std::pair("\\(dq", "\"")}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

// The text after each ".TP" and ".B KEY", up to the next one, in the section KEYS.
std::map<std::string, std::string> described() {
  const auto page = read_file(ANTDT_SOURCE_DIR "/man/job.toml.5");
  EXPECT_TRUE(page) << (page ? "" : page.error().message);
  std::istringstream lines(page.value_or(""));
  std::map<std::string, std::string> keys;
  std::string key;
  bool in_keys = false;
  bool tagged = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".SH")) in_keys = line == ".SH KEYS";
    if (!in_keys) continue;
    if (tagged && line.starts_with(".B ")) {
      key = plain(line.substr(3));
      keys[key] = "";
    } else if (!key.empty()) {
      keys[key] += plain(line) + "\n";
    }
    tagged = line == ".TP";
  }
  return keys;
}

TEST(ManPage, DescribesEachKeyWithItsDefaultAndChoices) {
  const auto keys = described();
  for (const schema::Key& key : schema::keys()) {
    const auto entry = keys.find(std::string(key.path));
    ASSERT_NE(entry, keys.end()) << key.path << " is not in man/job.toml.5";
    if (key.fallback.empty()) {
      EXPECT_THAT(entry->second, testing::HasSubstr("must be written")) << key.path;
    } else if (key.choices.empty() || key.choices.back() != "") {
      EXPECT_THAT(entry->second, testing::HasSubstr(fmt::format("default {}.", key.fallback)))
          << key.path;
    }
    for (const std::string_view choice : key.choices) {
      if (choice.empty()) continue;
      EXPECT_THAT(entry->second, testing::HasSubstr(fmt::format("\"{}\"", choice))) << key.path;
    }
  }
}

TEST(ManPage, DescribesOnlyExistingKeys) {
  for (const auto& [key, text] : described()) {
    EXPECT_NE(schema::find_key(key), nullptr) << key << " is in man/job.toml.5 only";
  }
}

}  // namespace
}  // namespace antdt::launcher
