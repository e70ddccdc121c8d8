// Input: a journal whose records can each be read but may contradict one another. When replay
// refuses one, the state must still be valid.
#include "shard_server/accounts/accounts.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ledger_data.h"

namespace {

using namespace antdt;
using namespace antdt::shard_server;

void replay(const LedgerConfig& config, fuzz::Input input) {
  Ledger ledger(config);
  Accounts accounts;
  while (!input.empty()) {
    const std::string_view record = input.long_part();
    if (!ledger.replay(record)) return;  // the job daemon stops here
    if (!accounts.apply(record)) return;
    (void)accounts.epochs();
    ANTDT_CHECK(ledger.committed() + ledger.outstanding() <= ledger.records(),
                "{} committed and {} held of {}", ledger.committed(), ledger.outstanding(),
                ledger.records());
  }
  const std::string image = ledger.image();
  const auto again = Ledger::restore(config, image);
  ANTDT_CHECK(again.has_value(), "its own image is refused: {}", again.error().message);
  ANTDT_CHECK(again->image() == image, "another state");
}

}  // namespace

ANTDT_FUZZ_TARGET(ledger_replay)(const std::uint8_t* data, std::size_t size) {
  for (const LedgerConfig& config : fuzz::ledger_configs()) replay(config, {data, size});
  return 0;
}
