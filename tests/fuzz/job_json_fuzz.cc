// The effective configuration as JSON: of a run directory, or from an agent.
#include "launcher/config/job_config.h"
#include "tests/fuzz/support/fuzz.h"
#include "trainer/data/data_config.h"

ANTDT_FUZZ_TARGET(job_json)(const std::uint8_t* data, std::size_t size) {
  const std::string text(antdt::fuzz::Input(data, size).rest());
  if (const auto config = antdt::launcher::from_json(text)) {
    const std::string json = antdt::launcher::to_json(*config);
    const auto again = antdt::launcher::from_json(json);
    ANTDT_CHECK(again.has_value(), "what was written cannot be read: {}", again.error().message);
    ANTDT_CHECK(antdt::launcher::to_json(*again) == json, "another job");
  }
  (void)antdt::data::parse_data_config(text, antdt::data::Split::kTrain);
  (void)antdt::data::parse_data_config(text, antdt::data::Split::kEval);
  return 0;
}
