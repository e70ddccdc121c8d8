#include "trainer/main/parts.h"

#include "core/domain/pinned_data.h"
#include "trainer/data/data_config.h"

namespace antdt::trainer {

Result<Split> Parts::open(data::Split which) {
  auto split = opened(which);
  opening_.tell_that_it_is_open();
  return split;
}

Result<Split> Parts::opened(data::Split which) {
  Split split;
  ANTDT_TRY(split.summary, data::build_index(config_json_, which, opening_, "", domain_));
  ANTDT_TRY(const PinnedData pins, parse_pinned_data(config_json_));
  // The records may all be in other domains.
  if (split.summary.records == 0 && !pins.has(data::name_of(which))) return split;
  if (config_.reader.empty()) {
    ANTDT_TRY(split.reader, data::open_reader(config_json_, which, opening_, "", domain_));
  } else {
    ANTDT_TRY(split.reader, own_reader(which, split.summary));
  }
  return split;
}

Status check_job(Parts& parts) {
  ANTDT_TRY(const Split train, parts.open(data::Split::kTrain));
  ANTDT_TRY(const Split eval, parts.open(data::Split::kEval));
  if (!train.reader) return fail(ErrorKind::kUsage, "the training data has no records");
  ANTDT_RETURN_IF_ERROR(parts.try_to_make(train.reader->shape()));
  return parts.options_read();
}

}  // namespace antdt::trainer
