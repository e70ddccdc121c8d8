// The index of a data set, as it lies in a user's cache directory. First byte
// 'r': the file as it is; else the number of offsets, then that of vocabulary
// keys, and the description, in a file whose checksum is right.
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/index_file.h"

ANTDT_FUZZ_TARGET(index)(const std::uint8_t* bytes, std::size_t size) {
  using namespace antdt;
  static const fuzz::MemoryFile file;
  fuzz::Input input(bytes, size);
  const std::size_t first = input.byte();
  if (first == 'r') {
    file.write(input.rest());
  } else {
    const std::size_t records = first % 16;
    const std::string words((records + input.byte() % 16) * 8, '\1');
    file.write(fuzz::index_file(words, records, input.rest()));
  }
  const auto index = data::Index::open(file.path());
  if (!index) return 0;
  const std::string meta = encode_meta(index->meta());
  const auto again = data::decode_meta(meta);
  ANTDT_CHECK(again.has_value(), "a description is refused: {}", again.error().message);
  ANTDT_CHECK(encode_meta(*again) == meta, "another description");
  (void)data::fingerprint_of(index->meta());
  return 0;
}
