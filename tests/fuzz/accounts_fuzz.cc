// An image of the accounts, of a snapshot or a checkpoint.
#include "shard_server/accounts/accounts.h"
#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using antdt::shard_server::Accounts;
  const auto accounts = Accounts::restore(antdt::fuzz::Input(data, size).rest());
  if (!accounts) return 0;
  const std::string image = accounts->image();
  const auto again = Accounts::restore(image);
  ANTDT_CHECK(again.has_value(), "an image is refused: {}", again.error().message);
  ANTDT_CHECK(again->image() == image, "other accounts");
  (void)accounts->epochs();
  return 0;
}
