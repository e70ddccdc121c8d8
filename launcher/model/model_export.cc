#include "launcher/model/model_export.h"

#include <algorithm>
#include <set>

#include "core/os/fs.h"
#include "launcher/model/model_npy.h"

namespace antdt::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kPiece = 1U << 20;

// Whether any file system accepts the name, and it stays in its directory.
bool is_plain(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 200 && name.front() != '.' &&
         std::ranges::all_of(name, plain);
}

class ModelWriter {
 public:
  ModelWriter(const CheckpointFiles& files, std::string directory,
              const std::function<bool()>& stopped)
      : files_(files), directory_(std::move(directory)), stopped_(stopped) {}

  [[nodiscard]] Result<OrderedJson> write(const ParameterPlace& parameter) {
    const std::string file = file_name(parameter.name, ".npy");
    ANTDT_TRY(auto array, NpyWriter::create(path(file), parameter.type, parameter.shape));
    for (const Extent& extent : parameter.values) ANTDT_RETURN_IF_ERROR(copy(extent, array));
    ANTDT_RETURN_IF_ERROR(array.finish());
    return OrderedJson{{"name", parameter.name}, {"shape", parameter.shape}, {"file", file}};
  }

  [[nodiscard]] Result<OrderedJson> write(const TablePlace& table) {
    const std::string stem = file_name(table.name, "");
    const std::string keys_file = stem + ".keys.npy";
    const std::string values_file = stem + ".values.npy";
    ANTDT_TRY(auto keys, NpyWriter::create(path(keys_file), NpyType::kUint64, {table.rows}));
    ANTDT_TRY(auto values,
              NpyWriter::create(path(values_file), NpyType::kFloat32, {table.rows, table.width}));
    for (const Extent& part : table.parts) {
      ANTDT_RETURN_IF_ERROR(split(part, table, keys, values));
    }
    ANTDT_RETURN_IF_ERROR(keys.finish());
    ANTDT_RETURN_IF_ERROR(values.finish());
    return OrderedJson{{"name", table.name},
                       {"width", table.width},
                       {"rows", table.rows},
                       {"keys_file", keys_file},
                       {"values_file", values_file}};
  }

 private:
  [[nodiscard]] std::string path(const std::string& file) const { return directory_ + "/" + file; }

  // A name that is not a file name, or exists already, is replaced by a number.
  [[nodiscard]] std::string file_name(const std::string& name, const char* ending) {
    std::string file = is_plain(name) ? name : fmt::format("array-{}", names_.size());
    if (!names_.insert(file).second) {
      file = fmt::format("array-{}", names_.size());
      names_.insert(file);
    }
    return file + ending;
  }

  [[nodiscard]] Status read(std::uint32_t file, std::uint64_t first, std::uint64_t bytes) {
    if (stopped_()) return fail(ErrorKind::kAborted, "stopped: nothing is exported");
    buffer_.resize(bytes);
    return files_.read(file, first, buffer_);
  }

  [[nodiscard]] Status copy(const Extent& extent, NpyWriter& array) {
    for (std::uint64_t at = 0; at < extent.bytes; at += buffer_.size()) {
      const std::uint64_t piece = std::min(kPiece, extent.bytes - at);
      ANTDT_RETURN_IF_ERROR(read(extent.file, extent.first + at, piece));
      array.write(buffer_);
    }
    return {};
  }

  // Writes the keys to one file and the values to another; the optimizer's floats are left out.
  [[nodiscard]] Status split(const Extent& part, const TablePlace& table, NpyWriter& keys,
                             NpyWriter& values) {
    const std::uint64_t row = table.row_bytes();
    const std::uint64_t rows_a_piece = std::max<std::uint64_t>(1, kPiece / row);
    for (std::uint64_t at = 0; at < part.bytes; at += buffer_.size()) {
      const std::uint64_t piece = std::min(rows_a_piece * row, part.bytes - at);
      ANTDT_RETURN_IF_ERROR(read(part.file, part.first + at, piece));
      for (std::string_view left = buffer_; !left.empty(); left.remove_prefix(row)) {
        keys.write(left.substr(0, 8));
        values.write(left.substr(8, 4 * std::size_t{table.width}));
      }
    }
    return {};
  }

  const CheckpointFiles& files_;
  std::string directory_;
  const std::function<bool()>& stopped_;
  std::set<std::string> names_;
  std::string buffer_;
};

}  // namespace

Result<OrderedJson> write_model(const CheckpointFiles& files, const ModelContent& content,
                                const ModelOrigin& origin, const std::string& directory,
                                const std::function<bool()>& stopped) {
  ModelWriter writer(files, directory, stopped);
  OrderedJson index{{"schema", 1},
                    {"job", origin.job},
                    {"model", origin.model},
                    {"checkpoint", origin.checkpoint},
                    {"step", origin.step.value},
                    {"parameters", OrderedJson::array()},
                    {"tables", OrderedJson::array()}};
  for (const ParameterPlace& parameter : content.parameters) {
    ANTDT_TRY(OrderedJson entry, writer.write(parameter));
    index["parameters"].push_back(std::move(entry));
  }
  for (const TablePlace& table : content.tables) {
    ANTDT_TRY(OrderedJson entry, writer.write(table));
    index["tables"].push_back(std::move(entry));
  }
  ANTDT_RETURN_IF_ERROR(write_file_atomic(directory + "/index.json", index.dump(1) + "\n"));
  return index;
}

std::uint64_t model_bytes(const ModelContent& content) {
  std::uint64_t bytes = 0;
  for (const ParameterPlace& parameter : content.parameters) {
    bytes += npy_bytes(parameter.type, parameter.shape);
  }
  for (const TablePlace& table : content.tables) {
    bytes += npy_bytes(NpyType::kUint64, {table.rows}) +
             npy_bytes(NpyType::kFloat32, {table.rows, table.width});
  }
  return bytes;
}

}  // namespace antdt::cli
