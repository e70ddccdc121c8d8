// An image of the accounts, of a snapshot or a checkpoint. Then records are pinned, perhaps anew.
#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/record_codec.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ledger_data.h"

ANTDT_FUZZ_TARGET(accounts)(const std::uint8_t* data, std::size_t size) {
  using antdt::shard_server::Accounts;
  auto accounts = Accounts::restore(antdt::fuzz::Input(data, size).rest());
  if (!accounts) return 0;
  const std::string image = accounts->image();
  const auto again = Accounts::restore(image);
  ANTDT_CHECK(again.has_value(), "an image is refused: {}", again.error().message);
  ANTDT_CHECK(again->image() == image, "other accounts");
  (void)accounts->epochs();
  const antdt::shard_server::Pins pins = antdt::fuzz::pinned_ledger_config().train.pins;
  for (const std::uint64_t records : {pins.records(), pins.records() / 4}) {
    const antdt::shard_server::ledger::DataPinned pinned{pins.first(records)};
    (void)accounts->apply(antdt::shard_server::encode_record(pinned));
    (void)accounts->epochs();
  }
  return 0;
}
