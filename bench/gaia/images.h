// MNIST in memory, divided among domains.
#pragma once

#include <cstdint>
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

// The rows of `examples` with these numbers.
void take_rows(const data::Examples& examples, const std::vector<std::uint32_t>& rows,
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
