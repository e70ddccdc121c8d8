#include "jobd/programs/described_data.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace antdt::jobd {
namespace {

// Numbers from here on are not exact in every reader of JSON, and sums of them could overflow.
constexpr std::uint64_t kTooMany = std::uint64_t{1} << 53;

constexpr std::string_view kDescribeAgain =
    "write it again by antdt data index JOB --json on a host of the domain";

Status check_files(const DescribedData& data, const DataFound& there, const std::string& path) {
  std::set<std::string_view> paths;
  std::uint64_t records = 0;
  for (const wire::DataFile& file : data.files) {
    if (!paths.insert(file.path).second) {
      return fail(ErrorKind::kUsage, "{} lists '{}' twice: {}", path, file.path, kDescribeAgain);
    }
    records += std::min(file.records, kTooMany);
    if (file.bytes >= kTooMany || records >= kTooMany) {
      return fail(ErrorKind::kUsage,
                  "{}: '{}' has {} records in {} bytes, and numbers of 2^53 or more cannot be: {}",
                  path, file.path, file.records, file.bytes, kDescribeAgain);
    }
  }
  if (records == there.train_records) return {};
  return fail(ErrorKind::kUsage,
              "{} has {} training records (train_records), and its training files have {}: {}",
              path, there.train_records, records, kDescribeAgain);
}

}  // namespace

Result<DescribedData> described_data(const DataFound& there, const std::string& format,
                                     const std::string& domain, const std::string& path) {
  DescribedData data;
  data.part.split = "train";
  data.part.domain = domain;
  for (const wire::DataFile& file : there.files) {
    if (file.split != "train") continue;
    const bool labels = format == "idx" && data.files.size() % 2 == 1;
    (labels ? data.part.labels : data.part.files).push_back(file.path);
    data.files.push_back(file);
  }
  if (data.files.empty() || there.classes == 0) {
    return fail(ErrorKind::kUsage, "{} describes no training files of domain '{}': {}", path,
                domain, kDescribeAgain);
  }
  if (format == "idx" && data.files.size() % 2 == 1) {
    return fail(ErrorKind::kUsage,
                "{}: '{}' has no file of labels behind it; format \"idx\" has files in pairs: {}",
                path, data.files.back().path, kDescribeAgain);
  }
  ANTDT_RETURN_IF_ERROR(check_files(data, there, path));
  data.part.records = there.train_records;
  return data;
}

}  // namespace antdt::jobd
