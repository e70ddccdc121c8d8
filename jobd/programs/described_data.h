// What a description says of a domain's files that the launching host does not have
// (domain[].described): what `antdt data index JOB --json` wrote on a host of the domain. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/domain/pinned_data.h"
#include "core/result.h"
#include "jobd/programs/job_spec.h"

namespace antdt::jobd {

struct DescribedData {
  PinnedPart part;                    // the training files of the domain, with their records
  std::vector<wire::DataFile> files;  // the same files, and those of labels, as they are described
};

// `format` is data.format of the job, `path` names the description in errors. The error (kUsage)
// says what cannot be: no training files, a file that is listed twice, images without labels, a
// number of 2^53 or more, or numbers of records that do not add up.
[[nodiscard]] Result<DescribedData> described_data(const DataFound& there,
                                                   const std::string& format,
                                                   const std::string& domain,
                                                   const std::string& path);

}  // namespace antdt::jobd
