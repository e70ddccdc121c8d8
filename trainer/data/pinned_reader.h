// The records of a data set of which some are pinned to other domains, so that they cannot be read
// here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/domain/pinned_data.h"
#include "core/result.h"
#include "trainer/data/data_config.h"
#include "trainer/data/dataset.h"

namespace antdt::data {

// Removes the files of other domains from a split that is pinned.
void keep_files_of(const std::string& domain, const std::string& split, const PinnedData& pins,
                   DataConfig& config);

class PinnedReader final : public RecordReader {
 public:
  // How `own` numbers records: like this reader, or the records of the domain from 0 on.
  enum class Numbers { kOfAll, kOfDomain };
  PinnedReader(std::unique_ptr<RecordReader> own, const PinnedData& pins, const std::string& split,
               std::string domain, Numbers numbers);

  [[nodiscard]] const DataShape& shape() const override { return own_->shape(); }
  // Of all domains.
  [[nodiscard]] std::uint64_t records() const override { return records_; }
  // The error names a record of another domain, which is a defect of who granted it.
  [[nodiscard]] Status read(std::span<const std::uint64_t> record_numbers, Examples& out) override;

 private:
  // Consecutive records of the domain.
  struct Run {
    std::uint64_t first = 0, records = 0;
    std::uint64_t own_first = 0;  // the number that `own` has for the first
  };

  std::unique_ptr<RecordReader> own_;
  std::string domain_;
  std::uint64_t records_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint64_t> numbers_;  // kept so that its memory is reused
};

}  // namespace antdt::data
