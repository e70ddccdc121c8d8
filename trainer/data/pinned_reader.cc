#include "trainer/data/pinned_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace antdt::data {

void keep_files_of(const std::string& domain, const std::string& split, const PinnedData& pins,
                   DataConfig& config) {
  config.paths.clear();
  config.label_paths.clear();
  for (const PinnedPart& part : pins.parts) {
    if (part.split != split || part.domain != domain) continue;
    config.paths.insert(config.paths.end(), part.files.begin(), part.files.end());
    config.label_paths.insert(config.label_paths.end(), part.labels.begin(), part.labels.end());
  }
}

PinnedReader::PinnedReader(std::unique_ptr<RecordReader> own, const PinnedData& pins,
                           const std::string& split, std::string domain, Numbers numbers)
    : own_(std::move(own)), domain_(std::move(domain)) {
  std::uint64_t of_domain = 0;
  for (const PinnedPart& part : pins.parts) {
    if (part.split != split) continue;
    if (part.domain == domain_) {
      runs_.push_back({records_, part.records, numbers == Numbers::kOfAll ? records_ : of_domain});
      of_domain += part.records;
    }
    records_ += part.records;
  }
}

Status PinnedReader::read(std::span<const std::uint64_t> record_numbers, Examples& out) {
  numbers_.clear();
  for (const std::uint64_t record : record_numbers) {
    const auto behind = std::ranges::upper_bound(runs_, record, {}, &Run::first);
    const auto run = behind == runs_.begin() ? runs_.end() : std::prev(behind);
    if (run == runs_.end() || record - run->first >= run->records) {
      return fail(ErrorKind::kCorrupt,
                  "record {} is pinned to another domain than '{}', in which this worker is: it "
                  "must not be given to it",
                  record, domain_);
    }
    numbers_.push_back(run->own_first + (record - run->first));
  }
  return own_->read(numbers_, out);
}

}  // namespace antdt::data
