#include "trainer/kit/own_reader.h"

#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "trainer/torch/models/model.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

using data::ElementType;

std::optional<ElementType> element_type(torch::ScalarType type) {
  for (const ElementType known : {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32, ElementType::kUint8, ElementType::kBool}) {
    if (scalar_type(known) == type) return known;
  }
  return {};
}

// The required type of a column that is a member of a batch.
struct MemberColumn {
  const char* name;
  torch::ScalarType type;
  std::size_t dimensions;  // dimensions of one record
};
constexpr MemberColumn kMembers[] = {{"dense", torch::kFloat32, 1},
                                     {"ids", torch::kInt64, 1},
                                     {"labels", torch::kFloat32, 0},
                                     {"weights", torch::kFloat32, 0}};

Status check_column(const kit::Column& column) {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorKind::kUsage, "its column '{}' {}", column.name, why);
  };
  if (column.name.empty()) return wrong("has no name");
  if (!element_type(column.type)) {
    return wrong(fmt::format("is of {}: use float, double, int64, int32, uint8 or bool",
                             torch::toString(column.type)));
  }
  if (std::ranges::any_of(column.sizes, [](std::int64_t size) { return size <= 0; })) {
    return wrong("has a size that is not above 0");
  }
  for (const MemberColumn& member : kMembers) {
    if (column.name != member.name) continue;
    if (column.type == member.type && column.sizes.size() == member.dimensions) return {};
    return wrong(fmt::format("must be {} with {} dimensions a record, as that of each batch",
                             torch::toString(member.type), member.dimensions));
  }
  return {};
}

Result<data::DataShape> checked(const kit::DataShape& shape) {
  data::DataShape made;
  made.classes = shape.classes;
  made.id_rows = shape.id_rows;
  if (shape.columns.empty()) return fail(ErrorKind::kUsage, "it has no columns");
  std::set<std::string> names;
  for (const kit::Column& column : shape.columns) {
    ANTDT_RETURN_IF_ERROR(check_column(column));
    if (!names.insert(column.name).second) {
      return fail(ErrorKind::kUsage, "it has two columns '{}'", column.name);
    }
    std::size_t elements = 1;
    for (const std::int64_t size : column.sizes) elements *= static_cast<std::size_t>(size);
    made.columns.push_back({column.name, *element_type(column.type), column.sizes,
                            elements * torch::elementSize(column.type)});
    if (column.name == "dense") made.dense_width = elements;
    if (column.name == "ids") made.id_width = elements;
  }
  if (made.id_width > 0 && made.id_rows == 0) {
    return fail(ErrorKind::kUsage,
                "it has a column 'ids', and id_rows of its shape is 0: all ids "
                "are below id_rows");
  }
  return made;
}

class OwnReader final : public data::RecordReader {
 public:
  OwnReader(std::string name, std::unique_ptr<kit::Reader> reader, data::DataShape shape)
      : name_(std::move(name)),
        reader_(std::move(reader)),
        records_(reader_->records()),
        shape_(std::move(shape)) {}

  [[nodiscard]] const data::DataShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t records() const override { return records_; }

  [[nodiscard]] Status read(std::span<const std::uint64_t> record_numbers,
                            data::Examples& out) override {
    if (record_numbers.empty()) return {};
    const std::string what = fmt::format("reader '{}' cannot read {} records from number {} on",
                                         name_, record_numbers.size(), record_numbers.front());
    return or_thrown(ErrorKind::kCorrupt, what, [&]() -> Status {
      out.clear();
      out.count = record_numbers.size();
      out.columns.resize(shape_.columns.size());
      kit::Tensors rows;
      for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
        out.columns[i].assign(out.count * shape_.columns[i].bytes, std::byte{0});
        rows.emplace(shape_.columns[i].name, view(out, i));
      }
      reader_->read(record_numbers, rows);
      for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
        ANTDT_RETURN_IF_ERROR(take(rows, out, i));
      }
      ANTDT_RETURN_IF_ERROR(check_ids(out));
      return check_labels(record_numbers, out);
    });
  }

 private:
  [[nodiscard]] torch::Tensor view(data::Examples& examples, std::size_t column) const {
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(examples.count)};
    const data::ColumnShape& shape = shape_.columns[column];
    sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
    return torch::from_blob(examples.columns[column].data(), sizes, scalar_type(shape.type));
  }

  // Takes the rows into `out`. The reader may have replaced a tensor by one of its own.
  [[nodiscard]] Status take(const kit::Tensors& rows, data::Examples& out, std::size_t column) {
    const std::string& name = shape_.columns[column].name;
    torch::Tensor ours = view(out, column);
    const auto found = rows.find(name);
    if (found == rows.end() || !found->second.defined() || found->second.sizes() != ours.sizes()) {
      return fail(ErrorKind::kCorrupt,
                  "reader '{}' made no column '{}' of {} records and the sizes "
                  "of its shape",
                  name_, name, out.count);
    }
    if (found->second.data_ptr() != ours.data_ptr()) ours.copy_(found->second);
    return {};
  }

  // Checks the ids, with which a model indexes memory.
  [[nodiscard]] Status check_ids(const data::Examples& examples) const {
    for (const std::int64_t id : ids_of(examples, shape_)) {
      if (id >= 0 && static_cast<std::uint64_t>(id) < shape_.id_rows) continue;
      return fail(ErrorKind::kCorrupt, "reader '{}' gave the id {}: ids are 0 or more and below {}",
                  name_, id, shape_.id_rows);
    }
    return {};
  }

  // Cross entropy of several classes indexes memory with the label. A processor says which does not
  // fit; a device stops, and answers nothing more.
  [[nodiscard]] Status check_labels(std::span<const std::uint64_t> record_numbers,
                                    data::Examples& examples) const {
    if (shape_.classes <= 2) return {};
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      if (shape_.columns[i].name != "labels") continue;
      const torch::Tensor labels = view(examples, i);
      const std::span values(labels.data_ptr<float>(), examples.count);
      for (std::size_t row = 0; row < values.size(); ++row) {
        if (values[row] >= 0 && values[row] < static_cast<float>(shape_.classes)) continue;
        return fail(ErrorKind::kCorrupt,
                    "reader '{}' gave record {} the label {}: its shape has {} classes, so labels "
                    "are 0 to {}",
                    name_, record_numbers[row], values[row], shape_.classes, shape_.classes - 1);
      }
    }
    return {};
  }

  std::string name_;
  std::unique_ptr<kit::Reader> reader_;
  std::uint64_t records_;
  data::DataShape shape_;
};

}  // namespace

Result<std::unique_ptr<data::RecordReader>> adapt_reader(const std::string& name,
                                                         std::unique_ptr<kit::Reader> reader) {
  using Made = Result<std::unique_ptr<data::RecordReader>>;
  const std::string what = fmt::format("trainer.reader '{}'", name);
  return or_thrown(ErrorKind::kUsage, what, [&]() -> Made {
    auto shape = checked(reader->shape());
    if (!shape) return fail(shape.error().kind, "{}: {}", what, shape.error().message);
    return std::make_unique<OwnReader>(name, std::move(reader), std::move(*shape));
  });
}

}  // namespace antdt::trainer
