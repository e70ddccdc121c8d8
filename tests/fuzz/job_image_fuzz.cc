// Input: the job daemon's state beside the ledger, as the journal holds it.
#include "core/wire/codec.h"
#include "ctl/job/job_image.h"
#include "tests/fuzz/support/fuzz.h"

ANTDT_FUZZ_TARGET(job_image)(const std::uint8_t* data, std::size_t size) {
  using antdt::ctl::JobImage;
  const auto image = antdt::wire::decode<JobImage>(antdt::fuzz::Input(data, size).rest());
  if (!image) return 0;
  const std::string written = antdt::wire::encode(*image);
  const auto again = antdt::wire::decode<JobImage>(written);
  ANTDT_CHECK(again.has_value(), "what was encoded cannot be decoded: {}", again.error().message);
  ANTDT_CHECK(antdt::wire::encode(*again) == written, "another image");
  return 0;
}
