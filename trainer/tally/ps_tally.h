// The models `tally` and `tally3` on parameter servers: the table "tally" of rows
// of one float, to which training adds exactly one for each record that enters.
// Sums of ones are exact in float32 up to 2^24, in whatever order servers add.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/loop/ps_model.h"

namespace antdt::trainer {

// Record r counts in the rows [n r, n (r + 1)), n being `parameters_a_record`: 1 of
// `tally`; 3 of `tally3`, whose rows of one record lie on several servers, so that
// a push that is applied on some of them only is seen.
//
// For records that are their own number (one id each, and nothing else); kUsage
// for data of another shape. `poison`: a record at which the process aborts, for
// tests of what then becomes of the job.
[[nodiscard]] Result<std::unique_ptr<PsModel>> make_tally_ps_model(
    const data::DataShape& shape, std::uint32_t parameters_a_record,
    std::optional<std::uint64_t> poison = {});

}  // namespace antdt::trainer
