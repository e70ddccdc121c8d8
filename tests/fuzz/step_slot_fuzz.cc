// Input: the slots that a step's last collective gathered. The collective delivers complete slots;
// their content comes from the other members.
#include <cstring>

#include "tests/fuzz/support/fuzz.h"
#include "trainer/worker/step_slot.h"

ANTDT_FUZZ_TARGET(step_slot)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt::worker;
  const auto bytes = std::as_bytes(std::span(data, size - size % kStepSlotBytes));
  if (bytes.empty()) return 0;
  const Agreement agreement = agree(decode_step_slots(bytes));
  ANTDT_CHECK(agreement.places.size() == size / kStepSlotBytes, "{} places",
              agreement.places.size());
  const StepSlotBytes written = encode(decode_step_slot(bytes.first<kStepSlotBytes>()));
  const StepSlotBytes again = encode(decode_step_slot(written));
  ANTDT_CHECK(written == again, "another slot");
  // All except the flags, of which unknown ones are dropped, and the reserved bytes.
  ANTDT_CHECK(std::memcmp(written.data(), bytes.data(), 44) == 0, "a slot is read as another");
  return 0;
}
