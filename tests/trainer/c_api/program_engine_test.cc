#include "trainer/c_api/program_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <span>

#include "tests/trainer/saved_state.h"

namespace antdt::capi {
namespace {

using Values = std::array<double, 2>;

StatePart part_in(Values& values) {
  return {"values", ANTDT_F64, {values.size()}, std::as_writable_bytes(std::span(values))};
}

struct Parts {
  ProgramEngine engine(bool state_on_request) {
    return ProgramEngine({exchange, reductions, upcoming, state, evaluations,
                          [] { return ProgramEngine::Standing{}; }, [] { return false; },
                          state_on_request});
  }

  Exchange exchange;
  Reductions reductions;
  Upcoming upcoming;
  StateParts state;
  Evaluations evaluations;
};

// A program with objects for a state makes new copies of it at any time, and the ones that it
// registered are gone. So before anything is written it is asked where they are now: as for a state
// that is received, also where the member has trained and reads a checkpoint after a loss.
TEST(ProgramEngine, ReadsACheckpointIntoTheMemoryThatTheProgramHasThen) {
  Parts parts;
  Values registered{1, 2}, present{3, 4};
  ASSERT_TRUE(parts.state.put(part_in(registered), true));
  TempDir checkpoint;
  ASSERT_TRUE(trainer::save_state(parts.engine(false), checkpoint.path(), Step{40}));
  registered = {5, 6};

  ProgramEngine engine = parts.engine(true);
  auto loaded = std::async(std::launch::async,
                           [&] { return trainer::load_state(engine, checkpoint.path()); });
  std::vector<std::int32_t> orders;
  while (orders.empty() || orders.back() != ANTDT_ORDER_STATE_REPLACED) {
    const auto order = parts.exchange.take(std::chrono::seconds(20));  // bounds a failure
    if (!order || *order == nullptr) break;
    orders.push_back((*order)->fields.kind);
    if (orders.back() == ANTDT_ORDER_STATE_WANTED) {
      EXPECT_TRUE(parts.state.put(part_in(present), false));
    }
    EXPECT_TRUE(parts.exchange.answer({}));
  }
  parts.exchange.close();
  const Result<Step> step = loaded.get();
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(*step, Step{40});
  EXPECT_EQ(orders,
            (std::vector<std::int32_t>{ANTDT_ORDER_STATE_WANTED, ANTDT_ORDER_STATE_REPLACED}));
  EXPECT_EQ(present, (Values{1, 2}));
  EXPECT_EQ(registered, (Values{5, 6})) << "memory was written that the program has given up";
}

}  // namespace
}  // namespace antdt::capi
