// A slice of parameters, from a checkpoint or another server.
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ps_tables.h"
#include "trainer/ps/rows/slice_image.h"

ANTDT_FUZZ_TARGET(ps_slice)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ps::Store store(fuzz::ps_tables(), 1);
  if (!ps::decode_slice(store, fuzz::kSlice, bytes)) return 0;
  std::string again;
  ps::encode_slice(store, fuzz::kSlice, [&](std::string_view piece) { again += piece; });
  ANTDT_CHECK(again == bytes, "a slice is written as another");
  return 0;
}
