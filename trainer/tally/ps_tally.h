// The models `tally` and `tally3` on parameter servers: the table "tally", with rows of one float,
// to which training adds exactly one for each record that enters the model. Sums of ones are exact
// in float32 up to 2^24, in whatever order servers add them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/loop/ps_model.h"

namespace antdt::trainer {

// Record r counts in the rows [n r, n (r + 1)), where n is `parameters_a_record`: 1 for `tally`; 3
// for `tally3`, whose rows of one record are on several servers, so that a push that is applied on
// only some of them is noticed.
//
// For records that are their own number (one id each, and nothing else); kUsage for data of another
// shape. `poison`: a record at which the process aborts, for tests of what the job then does.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_tally_ps_model(
    const data::DataShape& shape, std::uint32_t parameters_a_record,
    std::optional<std::uint64_t> poison = {});

}  // namespace antdt::trainer
