// What another domain sends of its updates (Gaia).
#include <algorithm>
#include <vector>

#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/gaia_elements.h"
#include "trainer/sync/gaia/update.h"

ANTDT_FUZZ_TARGET(gaia_update)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  using namespace antdt::sync;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto message = gaia::read_message(bytes, fuzz::kGaiaFirst, fuzz::kGaiaElements);
  if (!message) return 0;
  std::vector<float> values(fuzz::kGaiaElements), known(fuzz::kGaiaElements);
  gaia::apply(*message, gaia::Direction::kAdd, values, known);
  const auto changed = values.size() - static_cast<std::size_t>(std::ranges::count(values, 0.F));
  ANTDT_CHECK(values == known, "a message changes values and known ones unlike");
  ANTDT_CHECK(changed <= message->changed && message->changed <= values.size(),
              "{} elements changed by {} changes", changed, message->changed);
  gaia::apply(*message, gaia::Direction::kWithdraw, values, known);
  ANTDT_CHECK(std::ranges::count(values, 0.F) == std::ssize(values),
              "a message that is withdrawn leaves something");
  return 0;
}
