// The parts of the training state that the program registered, and how they lie in a checkpoint.
//
// parts.bin is the parts one after another, as they lie in memory (little-endian). parts.json has
// "schema", "step" and "parts": name, dtype, shape, first byte and bytes of each, so that other
// programs can read them (docs/c-api.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_reader.h"
#include "core/ids.h"
#include "core/result.h"
#include "trainer/loop/engine.h"

namespace antdt::capi {

inline constexpr const char* kPartsFile = "parts.bin";
inline constexpr const char* kPartsDescription = "parts.json";

struct StatePart {
  std::string name;
  std::int32_t dtype = 0;
  std::vector<std::uint64_t> shape;
  std::span<std::byte> bytes;
};

// "float32" for ANTDT_F32, and so on; null for what is no type.
[[nodiscard]] const char* name_of_dtype(std::int32_t dtype);
[[nodiscard]] std::uint64_t size_of_dtype(std::int32_t dtype);

// Any thread.
class StateParts {
 public:
  // A name that is there gets this memory instead, in its place. `grows`: it may be new or of
  // another size. Errors are kUsage.
  [[nodiscard]] Status put(StatePart part, bool grows);
  [[nodiscard]] Status remove(const std::string& name);

  [[nodiscard]] std::vector<std::span<std::byte>> bytes() const;
  [[nodiscard]] std::vector<trainer::StateFile> files(Step step) const;
  // Into the parts, in place. kCorrupt when they are damaged, or of another program.
  [[nodiscard]] Result<Step> load(CheckpointReader& files);

 private:
  [[nodiscard]] std::string describe_locked(Step step) const;

  mutable std::mutex mutex_;
  std::vector<StatePart> parts_;
};

}  // namespace antdt::capi
