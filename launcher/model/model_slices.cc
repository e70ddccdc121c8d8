// Finds the rows in the slice files of parameter servers.
#include <algorithm>
#include <array>
#include <cstring>

#include "launcher/model/model_content.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps_link/slice_file.h"

namespace antdt::cli {
namespace {

constexpr std::array<char, 16> kSliceMagic{"antdt slice 1"};
constexpr std::uint32_t kLongestName = 4096;
constexpr const char* kDense = "dense";

// Walks through a file according to its content.
class Cursor {
 public:
  Cursor(const CheckpointFiles& files, std::uint32_t file) : files_(files), file_(file) {}

  template <class T>
  [[nodiscard]] Status take(T& value) {
    return take(std::span(reinterpret_cast<char*>(&value), sizeof value));
  }
  [[nodiscard]] Status take(std::span<char> to) {
    ANTDT_RETURN_IF_ERROR(files_.read(file_, at_, to));
    at_ += to.size();
    return {};
  }
  // Passes over `count` items, and returns where they are.
  [[nodiscard]] Result<Extent> pass(std::uint64_t count, std::uint64_t bytes_each) {
    if (count > left() / bytes_each) return corrupt("is cut short");
    const Extent passed{file_, at_, count * bytes_each};
    at_ += passed.bytes;
    return passed;
  }
  [[nodiscard]] std::uint64_t left() const { return files_.bytes(file_) - at_; }
  [[nodiscard]] tl::unexpected<Error> corrupt(std::string_view what) const {
    return fail(ErrorKind::kCorrupt, "{} {}", files_.path(file_), what);
  }

 private:
  const CheckpointFiles& files_;
  std::uint32_t file_;
  std::uint64_t at_ = 0;
};

// Reads the header, and returns how many tables follow.
Result<std::uint32_t> take_header(Cursor& in, std::uint32_t slice) {
  std::array<char, 16> magic{};
  std::uint32_t found = 0;
  std::uint32_t tables = 0;
  ANTDT_RETURN_IF_ERROR(in.take(magic));
  ANTDT_RETURN_IF_ERROR(in.take(found));
  ANTDT_RETURN_IF_ERROR(in.take(tables));
  if (magic != kSliceMagic) return in.corrupt("is no slice of parameters");
  if (found != slice) return in.corrupt(fmt::format("holds slice {}", found));
  return tables;
}

// A table with the rows of one slice.
Result<TablePlace> take_table(Cursor& in) {
  TablePlace table;
  std::uint32_t length = 0;
  ANTDT_RETURN_IF_ERROR(in.take(length));
  if (length > kLongestName) return in.corrupt("has a table whose name is too long");
  table.name.resize(length);
  ANTDT_RETURN_IF_ERROR(in.take(std::span<char>(table.name)));
  ANTDT_RETURN_IF_ERROR(in.take(table.width));
  ANTDT_RETURN_IF_ERROR(in.take(table.state));
  ANTDT_RETURN_IF_ERROR(in.take(table.rows));
  ANTDT_TRY(const Extent rows, in.pass(table.rows, table.row_bytes()));
  if (rows.bytes > 0) table.parts.push_back(rows);
  return table;
}

Result<std::vector<TablePlace>> tables_of(const CheckpointFiles& files, std::uint32_t slice) {
  const auto file = files.find(ps::slice_file_name(slice));
  if (!file) {
    return fail(ErrorKind::kCorrupt, "{} is missing: a whole model has {} slices",
                ps::slice_file_name(slice), ps::kSlices);
  }
  Cursor in(files, *file);
  ANTDT_TRY(const std::uint32_t count, take_header(in, slice));
  std::vector<TablePlace> tables;
  for (std::uint32_t i = 0; i < count; ++i) {
    ANTDT_TRY(TablePlace table, take_table(in));
    tables.push_back(std::move(table));
  }
  if (in.left() > 0) return in.corrupt(fmt::format("has {} bytes too many", in.left()));
  return tables;
}

bool same_kind(const TablePlace& a, const TablePlace& b) {
  return a.name == b.name && a.width == b.width && a.state == b.state;
}

Status add(std::vector<TablePlace>& all, std::vector<TablePlace> more, std::uint32_t slice) {
  if (!std::ranges::equal(all, more, same_kind)) {
    return fail(ErrorKind::kCorrupt, "{} has other tables than the slices before it",
                ps::slice_file_name(slice));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rows += more[i].rows;
    all[i].parts.insert(all[i].parts.end(), more[i].parts.begin(), more[i].parts.end());
  }
  return {};
}

struct Block {
  std::uint64_t key = 0;
  Extent values;
};

Result<std::vector<Block>> blocks_of(const CheckpointFiles& files, const TablePlace& table) {
  std::vector<Block> blocks;
  for (const Extent& part : table.parts) {
    for (std::uint64_t at = 0; at < part.bytes; at += table.row_bytes()) {
      Block block{0, {part.file, part.first + at + 8, 4 * std::uint64_t{table.width}}};
      std::array<char, sizeof block.key> key{};
      ANTDT_RETURN_IF_ERROR(files.read(part.file, part.first + at, key));
      std::memcpy(&block.key, key.data(), sizeof block.key);
      blocks.push_back(block);
    }
  }
  std::ranges::sort(blocks, {}, &Block::key);
  return blocks;
}

// Workers see dense parameters as one array, of which a row is a block.
Result<ParameterPlace> as_array(const CheckpointFiles& files, const TablePlace& table) {
  ANTDT_TRY(const std::vector<Block> blocks, blocks_of(files, table));
  ParameterPlace array{table.name, {table.rows * table.width}, {}};
  for (const Block& block : blocks) {
    if (block.key != array.values.size()) {
      return fail(ErrorKind::kCorrupt,
                  "block {} of the dense parameters is missing: this was written before the "
                  "workers had given the first values; take a later checkpoint",
                  array.values.size());
    }
    array.values.push_back(block.values);
  }
  return array;
}

}  // namespace

Result<ModelContent> content_of_slices(const CheckpointFiles& files) {
  ANTDT_TRY(std::vector<TablePlace> all, tables_of(files, 0));
  for (std::uint32_t slice = 1; slice < ps::kSlices; ++slice) {
    ANTDT_TRY(std::vector<TablePlace> more, tables_of(files, slice));
    ANTDT_RETURN_IF_ERROR(add(all, std::move(more), slice));
  }
  ModelContent content;
  for (TablePlace& table : all) {
    if (table.name != kDense) {
      content.tables.push_back(std::move(table));
      continue;
    }
    ANTDT_TRY(ParameterPlace array, as_array(files, table));
    content.parameters.push_back(std::move(array));
  }
  return content;
}

}  // namespace antdt::cli
