// The model `tally`: one float32 for each record, to which training adds exactly one each time the
// record enters the model.
//
// There is no loss, no optimizer and no learning rate, and nothing is divided by the global weight:
// sums of ones are exact in float32 up to 2^24, whichever members add them and in whatever order,
// while B * (1 / B) is not 1 for many B.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/loop/engine.h"

namespace antdt::trainer {

// The files of save(): tally.f32, the counts as little-endian float32, record 0 first; and
// tally.json with "schema", "step" and "records".
inline constexpr const char* kTallyFile = "tally.f32";
inline constexpr const char* kTallyDescription = "tally.json";

// For records that are their own number (one id each, and nothing else); kUsage for data of another
// shape. `poison`: a record at which the process aborts, for tests of what the job then does.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_tally_engine(
    const data::DataShape& shape, std::optional<std::uint64_t> poison = {});
// The same, and each record also has three rows on servers (Engine::hosted_rows), as `tally3` has.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_hosted_tally_engine(
    const data::DataShape& shape, std::optional<std::uint64_t> poison = {});

}  // namespace antdt::trainer
