// Records in memory: those of MNIST and of other data, and how domains divide them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/data/dataset.h"

namespace antdt::bench::gaia {

struct Images {
  data::DataShape shape;
  data::Examples train, test;
};
// `directory` has MNIST's four files, unpacked, under their own names.
[[nodiscard]] Result<Images> read_images(const std::string& directory);

// All records of this split of a job's data; `shape` becomes theirs.
[[nodiscard]] Result<data::Examples> read_all(const std::string& job, data::Split split,
                                              data::DataShape& shape);

// The rows of `examples` with these numbers.
void take_rows(const data::Examples& examples, std::span<const std::uint32_t> rows,
               data::Examples& out);

enum class Division : std::uint8_t {
  kAlike,    // every domain has a random part
  kByLabel,  // sorted by label and cut: a domain has two or three of the ten digits
};
// Row numbers for each domain, equally many.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> divide(const data::Examples& train,
                                                             std::uint32_t domains,
                                                             Division division, std::uint64_t seed);

}  // namespace antdt::bench::gaia
