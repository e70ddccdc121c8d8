// The state of the ledger as bytes, for snapshots of the journal and for checkpoints. Equal states
// give equal bytes. The format is a number, the data sets (that of the open phase with the records
// that it has), then the fields of the state (shard_server/archive.h). Fields that can be computed
// from others are computed when an image is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "shard_server/archive.h"
#include "shard_server/ledger/ledger_state.h"

namespace antdt::shard_server {

class LedgerImage {
 public:
  [[nodiscard]] static std::string write(const LedgerState& state);
  // The error says that the image is damaged or of other data.
  [[nodiscard]] static Result<LedgerState> read(const DataSet& train, const DataSet& eval,
                                                std::string_view image);

 private:
  // The supply's, of all sections in their order.
  struct Fields {
    std::vector<std::uint64_t> cursors;
    std::vector<Range> returned;
    std::vector<Interval> skips, left_out;
  };
  [[nodiscard]] static Fields fields_of(const Supply& supply);
  [[nodiscard]] static Status read_into(LedgerState& state, std::string_view image);
  static void read_holders(Reader& in, LedgerState& state);
  [[nodiscard]] static Status fill(Supply& supply, const Fields& fields);
  // Whether some positions are left out that nobody declared as skipped.
  [[nodiscard]] static bool left_out_differs(const LedgerState& state);
  static void open_stream(LedgerState& state, std::uint64_t train_records);
  // The section from which all of these positions were granted; null if some never were.
  [[nodiscard]] static const SectionSupply* granted_from(const Supply& supply, Interval at);
  // Whether a repeated request can be answered with the ranges that it got the first time.
  [[nodiscard]] static bool can_be_said_again(const Answer& answer, const LedgerState& state);
  // Computes the fields that follow from others, and checks that the state is possible.
  [[nodiscard]] static Status follow(LedgerState& state, const std::vector<Range>& returned);
};

}  // namespace antdt::shard_server
