// Converts the job's configuration into what its parts need. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/domain/pinned_data.h"
#include "core/result.h"
#include "core/wire/membership_messages.h"
#include "ctl/control/controller.h"
#include "ctl/job/job_machine.h"
#include "ctl/lifecycle/lifecycle.h"
#include "launcher/config/job_config.h"
#include "shard_server/ledger/stream.h"
#include "shard_server/pins/pins.h"

namespace antdt::jobd {

// What the launcher found in the data (RUN/data.json). A run of an earlier release lists no files.
struct DataFound : wire::DataIdentity {
  std::uint64_t began_with = 0;      // training records when the run began; 0: as many as now
  std::uint64_t rows_put_aside = 0;  // malformed rows, which are no records
  PinnedData pins = {};              // which data are pinned to which domains
  std::uint32_t classes = 0;         // of the labels of the training files; 0: not known
  bool named_classes = false;        // they are names
};
[[nodiscard]] Result<DataFound> load_data_found(const std::string& run_dir);
// Reads it from a text; `where` names the text's source in the error.
[[nodiscard]] Result<DataFound> data_found(const std::string& text, const std::string& where);
// The members of RUN/data.json that load_data_found reads, but for began_with.
[[nodiscard]] nlohmann::ordered_json to_json(const wire::DataIdentity& found);

[[nodiscard]] Result<ctl::JobSpec> job_spec(const launcher::JobConfig& config,
                                            const DataFound& data);
[[nodiscard]] Result<ctl::ControllerConfig> controller_config(const launcher::JobConfig& config);
// Of the solution "skew-scout".
[[nodiscard]] ctl::VisitRules visit_rules(const launcher::JobConfig& config);

// To which domains the records of a split ("train" or "eval") are pinned; empty: they are not.
[[nodiscard]] shard_server::Pins pins_of(const PinnedData& data, std::string_view split);

// The training data, and the evaluation data.
[[nodiscard]] shard_server::DataSet train_set(const launcher::JobConfig& config,
                                              const DataFound& data);
[[nodiscard]] shard_server::DataSet eval_set(const launcher::JobConfig& config,
                                             const DataFound& data);

// The whole configuration of a new run's machine.
[[nodiscard]] Result<ctl::JobMachineConfig> machine_config(const launcher::JobConfig& config,
                                                           const DataFound& data);

}  // namespace antdt::jobd
