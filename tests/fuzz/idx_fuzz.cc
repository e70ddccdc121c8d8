// IDX files: one of images, then one of their labels. Two bytes say how long
// the first is.
#include <algorithm>

#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/index_file.h"
#include "trainer/data/formats/idx.h"

namespace {

using namespace antdt;

struct Files {
  fuzz::MemoryFile images, labels, index;
  Files() {
    data::IndexMeta meta;
    meta.files.resize(2);
    meta.files[0].path = images.path();
    meta.files[1].path = labels.path();
    index.write(fuzz::index_file("", 0, encode_meta(meta)));
  }
};

void read_all(data::RecordReader& reader) {
  data::Examples examples;
  for (std::uint64_t record = 0; record < std::min<std::uint64_t>(reader.records(), 20); ++record) {
    const Status read = reader.read(std::span(&record, 1), examples);
    ANTDT_CHECK(read.has_value(), "record {}: {}", record, read.error().message);
  }
  const std::uint64_t beyond = reader.records();
  ANTDT_CHECK(!reader.read(std::span(&beyond, 1), examples), "record {} is there", beyond);
}

}  // namespace

ANTDT_FUZZ_TARGET(idx)(const std::uint8_t* bytes, std::size_t size) {
  static const Files files;
  fuzz::Input input(bytes, size);
  files.images.write(input.long_part());
  files.labels.write(input.rest());
  const auto index = data::Index::open(files.index.path());
  ANTDT_CHECK(index.has_value(), "no index: {}", index.error().message);
  const auto reader = data::open_idx(*index, 10);
  if (reader) read_all(**reader);
  return 0;
}
