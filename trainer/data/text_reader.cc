#include "trainer/data/text_reader.h"

#include <algorithm>
#include <cstring>

namespace antdt::data {
namespace {

// Whether the files are listed in order and cover all records, each with its offset.
bool is_whole(const Index& index) {
  const std::uint64_t records = index.meta().records;
  std::uint64_t next = 0;
  for (const IndexedFile& file : index.meta().files) {
    if (file.first_record != next || file.records > records - next) return false;
    next += file.records;
  }
  return next == records && index.offsets().size() == records;
}

}  // namespace

TextReader::TextReader(Index index, std::unique_ptr<RowFormat> format, Labels labels, IdMap ids)
    : index_(std::move(index)),
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
  std::unique_ptr<TextReader> reader(
      new TextReader(std::move(index), std::move(format), std::move(labels), std::move(ids)));
  if (!is_whole(reader->index_)) {
    return fail(ErrorKind::kCorrupt,
                "the index of the data contradicts itself: delete the cache of indexes "
                "($XDG_CACHE_HOME/antdt) and start again");
  }
  for (const IndexedFile& indexed : reader->index_.meta().files) {
    ANTDT_TRY(MappedFile file, open_data_file(indexed.path));
    if (file.bytes().size() != indexed.bytes) {
      return fail(ErrorKind::kCorrupt, "{} has changed while it was in use", indexed.path);
    }
    reader->files_.push_back(std::move(file));
  }
  return reader;
}

Status TextReader::read(std::span<const std::uint64_t> record_numbers, Examples& out) {
  const std::size_t count = record_numbers.size();
  out.count = count;
  out.dense.resize(count * shape_.dense_width);
  out.ids.resize(count * shape_.id_width);
  out.labels.resize(count);
  out.weights.clear();
  for (std::size_t i = 0; i < count; ++i) {
    ANTDT_RETURN_IF_ERROR(decode(record_numbers[i], i, out));
  }
  return {};
}

Status TextReader::decode(std::uint64_t record, std::size_t row, Examples& out) {
  const auto& files = index_.meta().files;
  if (record >= records()) {
    return fail(ErrorKind::kCorrupt, "record {} was asked for, and the data set has {}", record,
                records());
  }
  std::size_t file = files.size() - 1;
  while (record < files[file].first_record) --file;
  const std::string_view bytes = files_[file].bytes();
  const std::uint64_t offset = index_.offsets()[record];
  std::string_view line = bytes.substr(std::min<std::uint64_t>(offset, bytes.size()));
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!format_->parse(line, row_)) {
    return fail(ErrorKind::kCorrupt, "{} at byte {} (record {}) is not what was indexed: {}",
                files[file].path, offset, record, row_.problem);
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
