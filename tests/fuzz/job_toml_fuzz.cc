// job.toml as a user wrote it. A job that loads must survive both of its
// complete forms: job.json and effective.toml read back to the same.
#include <glob.h>

#include <algorithm>

#include "launcher/config/job_config.h"
#include "tests/fuzz/support/fuzz.h"

// No pattern matches a file here, instead of walking this machine's.
extern "C" int glob(const char*, int, int (*)(const char*, int), glob_t*) { return GLOB_NOMATCH; }

ANTDT_FUZZ_TARGET(job_toml)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt::launcher;
  const std::string text(antdt::fuzz::Input(data, size).rest());
  // In toml++ 3.3, letters such as U+00E9 at the place of a key or of white space lead into code
  // that is declared unreachable (is_non_ascii_horizontal_whitespace).
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) > 0x7f; })) {
    return 0;
  }
  const auto config = load_text(text, "/nowhere/job.toml");
  if (!config) {
    ANTDT_CHECK(!config.error().message.empty(), "an error without a word");
    return 0;
  }
  const std::string json = to_json(*config);
  const auto of_json = from_json(json);
  ANTDT_CHECK(of_json.has_value(), "job.json cannot be read: {}", of_json.error().message);
  ANTDT_CHECK(to_json(*of_json) == json, "job.json is read as another job: {}", json);
  const auto of_toml = load_text(to_toml(*config), "/nowhere/job.toml");
  ANTDT_CHECK(of_toml.has_value(), "effective.toml cannot be read: {}", of_toml.error().message);
  ANTDT_CHECK(to_json(*of_toml) == json, "effective.toml is read as another job:\n{}\n{}", json,
              to_json(*of_toml));
  return 0;
}
