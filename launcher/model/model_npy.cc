#include "launcher/model/model_npy.h"

#include <array>
#include <bit>

#include "core/check.h"

namespace antdt::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::size_t kAlignment = 64;
constexpr std::string_view kNpyMagic("\x93NUMPY\x01\x00", 8);

struct Element {
  const char* descr;
  std::uint64_t bytes;
};
// In the order of NpyType.
constexpr std::array<Element, 11> kElements = {{{"<f4", 4},
                                                {"<u8", 8},
                                                {"<f8", 8},
                                                {"<f2", 2},
                                                {"<i8", 8},
                                                {"<i4", 4},
                                                {"<i2", 2},
                                                {"|i1", 1},
                                                {"<u2", 2},
                                                {"|u1", 1},
                                                {"|b1", 1}}};
const Element& element(NpyType type) { return kElements[static_cast<std::size_t>(type)]; }

// A Python tuple: a single number is followed by a comma.
std::string tuple_of(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t size : shape) text += fmt::format("{}, ", size);
  if (shape.size() == 1) return "(" + text.substr(0, text.size() - 1) + ")";
  return "(" + text.substr(0, text.empty() ? 0 : text.size() - 2) + ")";
}

}  // namespace

std::uint64_t npy_element_bytes(NpyType type) { return element(type).bytes; }

std::string npy_header(NpyType type, const std::vector<std::uint64_t>& shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                       element(type).descr, tuple_of(shape));
  const std::size_t before = kNpyMagic.size() + 2;
  const std::size_t unpadded = before + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ').append("\n");
  const std::size_t length = dictionary.size();
  std::string header(kNpyMagic);
  header += static_cast<char>(length & 255);
  header += static_cast<char>(length >> 8);
  return header + dictionary;
}

std::uint64_t npy_bytes(NpyType type, const std::vector<std::uint64_t>& shape) {
  std::uint64_t bytes = npy_element_bytes(type);
  for (const std::uint64_t size : shape) bytes *= size;
  return npy_header(type, shape).size() + bytes;
}

Result<NpyWriter> NpyWriter::create(const std::string& path, NpyType type,
                                    const std::vector<std::uint64_t>& shape) {
  ANTDT_TRY(FileWriter file, FileWriter::create(path));
  NpyWriter writer(std::move(file), npy_bytes(type, shape));
  writer.write(npy_header(type, shape));
  return writer;
}

Status NpyWriter::finish() {
  ANTDT_CHECK(file_.bytes() == bytes_, "{} bytes of an array that has {}", file_.bytes(), bytes_);
  return file_.finish();
}

}  // namespace antdt::cli
