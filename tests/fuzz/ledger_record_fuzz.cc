// One record of the ledger's journal.
#include "shard_server/ledger/record_codec.h"
#include "tests/fuzz/support/fuzz.h"

ANTDT_FUZZ_TARGET(ledger_record)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt::shard_server;
  const auto encode = [](const auto& record) { return encode_record(record); };
  const auto record = decode_record(antdt::fuzz::Input(data, size).rest());
  if (!record) return 0;
  const std::string written = std::visit(encode, *record);
  const auto again = decode_record(written);
  ANTDT_CHECK(again.has_value(), "what was encoded cannot be decoded: {}", again.error().message);
  ANTDT_CHECK(std::visit(encode, *again) == written, "another record");
  return 0;
}
