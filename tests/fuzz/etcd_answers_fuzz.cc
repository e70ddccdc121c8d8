// An answer of etcd's gateway, read as each of the answers that it could be. What can be read is
// within its bounds; base64 that can be read is written back as it was.
#include "store/base64.h"
#include "store/gateway_json.h"
#include "tests/fuzz/support/fuzz.h"

ANTDT_FUZZ_TARGET(etcd_answers)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  const std::string_view text = fuzz::Input(data, size).rest();
  if (const auto bytes = store::from_base64(text)) {
    // The last digit before the padding may have bits that no byte has.
    ANTDT_CHECK(store::from_base64(store::to_base64(*bytes)) == bytes, "'{}'", text);
    ANTDT_CHECK(store::to_base64(*bytes).size() == text.size(), "'{}'", text);
  }
  if (const auto change = store::read_change(text)) {
    ANTDT_CHECK(change->revision > 0, "revision {}", change->revision);
  }
  if (const auto found = store::read_query(text, "")) {
    ANTDT_CHECK(found->revision > 0, "revision {}", found->revision);
    for (const store::KeyValue& key : found->keys) {
      ANTDT_CHECK(key.key.size() + key.value.size() < size, "more bytes than were read");
    }
  }
  if (const auto lease = store::read_grant(text)) {
    ANTDT_CHECK(*lease != 0, "no lease");
  }
  if (!store::read_renewal(text)) static_cast<void>(store::read_token(text).has_value());
  for (const long status : {200L, 400L, 503L}) {
    const store::Refusal refusal = store::read_refusal(status, text);
    ANTDT_CHECK(refusal.text.size() < size + 300, "{} bytes", refusal.text.size());
  }
  return 0;
}
