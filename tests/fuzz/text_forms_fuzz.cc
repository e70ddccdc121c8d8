// Input: short texts (worker ids, times, sizes). A value that can be read must be written back as
// it was.
#include "core/ids.h"
#include "core/schema/units.h"
#include "tests/fuzz/support/fuzz.h"

ANTDT_FUZZ_TARGET(text_forms)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  const std::string_view text = fuzz::Input(data, size).rest();
  if (const auto id = parse_worker_id(text)) {
    ANTDT_CHECK(to_string(*id) == text, "'{}' is read as {}", text, *id);
  }
  if (const auto duration = schema::parse_duration(text)) {
    ANTDT_CHECK(duration->count() >= 0, "'{}' is negative", text);
    const auto again = schema::parse_duration(schema::format_duration(*duration));
    ANTDT_CHECK(again && *again == *duration, "'{}' is {} us", text, duration->count());
  }
  if (const auto bytes = schema::parse_size(text)) {
    const auto again = schema::parse_size(schema::format_size(*bytes));
    ANTDT_CHECK(again && *again == *bytes, "'{}' is {} bytes", text, *bytes);
  }
  return 0;
}
