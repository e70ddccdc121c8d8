// The state of the ledger as bytes, for snapshots of the journal and for checkpoints. The same
// state is the same bytes. The format is a number, the data sets, then the fields of the state
// (shard_server/archive.h); what follows from them is computed when an image is read.
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
  // An error where the image is damaged, or of other data.
  [[nodiscard]] static Result<LedgerState> read(const DataSet& train, const DataSet& eval,
                                                std::string_view image);

 private:
  [[nodiscard]] static Status read_into(LedgerState& state, std::string_view image);
  static void read_holders(Reader& in, LedgerState& state);
  // Whether positions are left out that nobody declared to be skipped.
  [[nodiscard]] static bool left_out_differs(const LedgerState& state);
  static void open_stream(LedgerState& state);
  // A request that comes again is answered with the ranges that it got.
  [[nodiscard]] static bool can_be_said_again(const Answer& answer, const LedgerState& state);
  // Computes what follows from the state, and checks that there can be such a state.
  [[nodiscard]] static Status follow(LedgerState& state, const std::vector<Range>& returned);
};

}  // namespace antdt::shard_server
