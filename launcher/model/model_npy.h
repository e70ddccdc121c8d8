// Arrays in NumPy's file format: .npy, format 1.0, C order, little endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/os/fs.h"
#include "core/result.h"

namespace antdt::cli {

enum class NpyType : std::uint8_t {
  kFloat32,
  kUint64,
  kFloat64,
  kFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint16,
  kUint8,
  kBool
};
[[nodiscard]] std::uint64_t npy_element_bytes(NpyType type);

// The bytes before the numbers: the magic, the version, and a dictionary that is padded so that the
// numbers begin at a multiple of 64 bytes.
[[nodiscard]] std::string npy_header(NpyType type, const std::vector<std::uint64_t>& shape);
[[nodiscard]] std::uint64_t npy_bytes(NpyType type, const std::vector<std::uint64_t>& shape);

class NpyWriter {
 public:
  [[nodiscard]] static Result<NpyWriter> create(const std::string& path, NpyType type,
                                                const std::vector<std::uint64_t>& shape);
  // Writes numbers in their order; finish() returns the error, if any.
  void write(std::string_view bytes) { file_.write(bytes); }
  // Syncs the file and puts it in place. All numbers of the shape must have been written.
  [[nodiscard]] Status finish();

 private:
  NpyWriter(FileWriter file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  FileWriter file_;
  std::uint64_t bytes_;  // size of the whole file
};

}  // namespace antdt::cli
