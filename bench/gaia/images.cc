#include "bench/gaia/images.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace antdt::bench::gaia {

Result<data::Examples> read_all(const std::string& job, data::Split split, data::DataShape& shape) {
  ANTDT_TRY(const auto reader, data::open_reader(job, split));
  std::vector<std::uint64_t> all(reader->records());
  std::iota(all.begin(), all.end(), 0U);
  data::Examples examples;
  ANTDT_RETURN_IF_ERROR(reader->read(all, examples));
  shape = reader->shape();
  return examples;
}

Result<Images> read_images(const std::string& directory) {
  const auto file = [&](const char* name) { return nlohmann::json::array({directory + name}); };
  const nlohmann::json job{{"data",
                            {{"format", "idx"},
                             {"paths", file("/train-images-idx3-ubyte")},
                             {"labels", file("/train-labels-idx1-ubyte")},
                             {"eval_paths", file("/t10k-images-idx3-ubyte")},
                             {"eval_labels", file("/t10k-labels-idx1-ubyte")}}}};
  Images images;
  ANTDT_TRY(images.train, read_all(job.dump(), data::Split::kTrain, images.shape));
  ANTDT_TRY(images.test, read_all(job.dump(), data::Split::kEval, images.shape));
  return images;
}

void take_rows(const data::Examples& examples, std::span<const std::uint32_t> rows,
               data::Examples& out) {
  out.clear();
  for (const std::uint32_t row : rows) out.append(examples, row, row + 1);
}

std::vector<std::vector<std::uint32_t>> divide(const data::Examples& train, std::uint32_t domains,
                                               Division division, std::uint64_t seed) {
  std::vector<std::uint32_t> rows(train.count);
  std::iota(rows.begin(), rows.end(), 0U);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(rows, random);
  if (division == Division::kByLabel) {
    std::ranges::stable_sort(rows, {}, [&](std::uint32_t row) { return train.labels[row]; });
  }
  const std::size_t each = rows.size() / domains;
  std::vector<std::vector<std::uint32_t>> parts;
  for (std::uint32_t d = 0; d < domains; ++d) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(d * each);
    parts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return parts;
}

}  // namespace antdt::bench::gaia
