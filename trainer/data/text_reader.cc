#include "trainer/data/text_reader.h"

namespace antdt::data {
namespace {

// Records of a shuffled shard lie apart, so the lines of so many are fetched in advance.
constexpr std::size_t kAhead = 4;

}  // namespace

TextReader::TextReader(LineFiles lines, std::unique_ptr<RowFormat> format, Labels labels, IdMap ids)
    : lines_(std::move(lines)),
      format_(std::move(format)),
      labels_(std::move(labels)),
      ids_(std::move(ids)) {
  shape_.dense_width = format_->numbers();
  shape_.id_width = format_->fields();
  shape_.id_rows = ids_.rows();
  shape_.classes = labels_.classes();
}

Result<std::unique_ptr<RecordReader>> TextReader::open(Index index,
                                                       std::unique_ptr<RowFormat> format,
                                                       Labels labels, IdMap ids) {
  ANTDT_TRY(LineFiles lines, LineFiles::open(std::move(index)));
  return std::unique_ptr<RecordReader>(
      new TextReader(std::move(lines), std::move(format), std::move(labels), std::move(ids)));
}

Status TextReader::read(std::span<const std::uint64_t> record_numbers, Examples& out) {
  const std::size_t count = record_numbers.size();
  out.count = count;
  out.dense.resize(count * shape_.dense_width);
  out.ids.resize(count * shape_.id_width);
  out.labels.resize(count);
  out.weights.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) lines_.expect(record_numbers[i + kAhead]);
    ANTDT_RETURN_IF_ERROR(decode(record_numbers[i], i, out));
  }
  return {};
}

Status TextReader::decode(std::uint64_t record, std::size_t row, Examples& out) {
  ANTDT_TRY(const std::string_view line, lines_.line(record));
  if (!format_->parse(line, row_)) {
    return fail(ErrorKind::kCorrupt, "{} is not what was indexed: {}", lines_.place_of(record),
                row_.problem);
  }
  out.labels[row] = labels_.value(row_.label);
  float* dense = out.dense.data() + row * shape_.dense_width;
  std::int64_t* ids = out.ids.data() + row * shape_.id_width;
  std::size_t field = 0;
  for (const double number : row_.numbers) {
    dense[field] = dense_value(number);
    ids[field] = ids_.id(field, number_key(number));
    ++field;
  }
  for (const std::uint64_t key : row_.keys) {
    ids[field] = ids_.id(field, key);
    ++field;
  }
  return {};
}

}  // namespace antdt::data
