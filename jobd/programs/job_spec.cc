#include "jobd/programs/job_spec.h"

#include <nlohmann/json.hpp>

#include "core/json_integer.h"
#include "core/os/fs.h"
#include "core/sync_strategy.h"

namespace antdt::jobd {
namespace {

shard_server::DataSet data_set(const launcher::JobConfig& config, std::uint64_t records) {
  shard_server::DataSet set;
  set.records = records;
  set.shard_records = std::max<std::uint64_t>(1, config.data.shard_records);
  set.shuffle = config.data.shuffle == "none"     ? shard_server::Shuffle::kNone
                : config.data.shuffle == "shards" ? shard_server::Shuffle::kShards
                                                  : shard_server::Shuffle::kFull;
  set.seed = config.job.seed;
  return set;
}

DataFound found_in(const nlohmann::json& json) {
  DataFound found;
  found.train_records = json_integer<std::uint64_t>(json.at("train_records"));
  found.eval_records = json_integer<std::uint64_t>(json, "eval_records", 0);
  found.began_with = json_integer<std::uint64_t>(json, "began_with", 0);
  found.rows_put_aside = json_integer<std::uint64_t>(json, "quarantined", 0);
  found.fingerprint = json.value("fingerprint", "");
  found.detail = json.value("detail", "");
  found.built_by = json.value("built_by", "");
  for (const nlohmann::json& file : json.value("files", nlohmann::json::array())) {
    found.files.push_back(
        {file.at("split"), file.at("path"), json_integer<std::uint64_t>(file.at("bytes")),
         json_integer<std::uint64_t>(file.at("records")), file.at("fingerprint")});
  }
  found.classes = json_integer<std::uint32_t>(json, "classes", 0);
  found.named_classes = json.value("named_classes", false);
  found.pins = pinned_data_of(json.value("pins", nlohmann::json()));
  return found;
}

}  // namespace

Result<DataFound> load_data_found(const std::string& run_dir) {
  const std::string path = run_dir + "/data.json";
  ANTDT_TRY(const std::string text, read_file(path));
  return data_found(text, path);
}

Result<DataFound> data_found(const std::string& text, const std::string& where) {
  try {
    return found_in(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorKind::kCorrupt, "{} is not what antdt run writes: {}", where, e.what());
  }
}

nlohmann::ordered_json to_json(const wire::DataIdentity& found) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const wire::DataFile& file : found.files) {
    files.push_back({{"split", file.split},
                     {"path", file.path},
                     {"bytes", file.bytes},
                     {"records", file.records},
                     {"fingerprint", file.fingerprint}});
  }
  return {{"train_records", found.train_records},
          {"eval_records", found.eval_records},
          {"fingerprint", found.fingerprint},
          {"detail", found.detail},
          {"files", files},
          {"built_by", found.built_by}};
}

shard_server::Pins pins_of(const PinnedData& data, std::string_view split) {
  shard_server::Pins pins{data.domains, {}};
  for (const PinnedPart& part : data.parts) {
    if (part.split == split) pins.add(part.records, part.domain);
  }
  return data.has(split) ? pins : shard_server::Pins{};
}

Result<ctl::JobSpec> job_spec(const launcher::JobConfig& config, const DataFound& data) {
  ctl::JobSpec spec;
  const launcher::RoleSection& role = config.roles.worker;
  spec.protocol = by_name<ctl::Protocol>(role.protocol).value_or(ctl::Protocol::kAntdt);
  spec.external = spec.protocol == ctl::Protocol::kAntdt && role.count == 0;
  if (role.min < role.max) {  // a plain number is only that of the beginning
    spec.fewest_workers = role.min;
    spec.most_workers = role.max;
  }
  spec.epochs = config.job.epochs;
  spec.train_records = data.train_records;
  spec.eval_records = data.eval_records;
  spec.began_with = data.began_with;
  spec.rows_put_aside = data.rows_put_aside;
  spec.checkpoint_every = config.checkpoint.every;
  spec.stop_grace = config.failure.stop_grace;
  spec.restart = by_name<ctl::Restart>(role.restart).value_or(ctl::Restart::kMember);
  spec.budgets = config.failure.budgets;
  spec.budget_refill = config.failure.budget_refill;
  spec.hang_after = config.failure.hang_after;
  spec.servers = config.roles.server.count;
  spec.server_replicas = config.roles.server.replicas;
  spec.sync = by_name<SyncStrategy>(config.trainer.sync).value_or(SyncStrategy::kAllReduce);
  spec.backups = config.trainer.backup_workers;
  spec.staleness = config.trainer.staleness;
  spec.delivery = parse_delivery(config.data.delivery).value_or(Delivery::kExactlyOnce);
  if (spec.protocol == ctl::Protocol::kAntdt && data.train_records == 0) {
    return fail(ErrorKind::kUsage, "the training data has no records: check [data] paths");
  }
  return spec;
}

Result<ctl::ControllerConfig> controller_config(const launcher::JobConfig& config) {
  ctl::ControllerConfig control;
  ANTDT_TRY(control.mode, ctl::parse_mode(config.control.mode));
  control.allow = config.control.allow;
  control.max_actions_per_hour = config.control.max_actions_per_hour;
  control.optimizer = config.trainer.optimizer;
  control.rules.global_batch = static_cast<std::uint32_t>(config.batch.global);
  ANTDT_TRY(control.rules.adjust, ctl::parse_adjust(config.batch.adjust));
  control.rules.multiple_of = config.batch.multiple_of;
  control.rules.min = config.batch.min;
  control.rules.max = config.batch.max;
  control.rules.base = ctl::accumulation_base(control.rules, config.roles.worker.count);
  control.monitor.transient_window = config.control.transient_window;
  control.monitor.persistent_window = config.control.persistent_window;
  control.monitor.share_steps = config.control.share_steps;
  if (by_name<SyncStrategy>(config.trainer.sync) == SyncStrategy::kGaia) {
    control.threshold = config.trainer.gaia.threshold;
  }
  return control;
}

ctl::VisitRules visit_rules(const launcher::JobConfig& config) {
  const launcher::SkewScoutSection& scout = config.control.skew_scout;
  return {scout.every, {scout.tolerated_loss, scout.weight_loss, scout.weight_bytes}};
}

shard_server::DataSet train_set(const launcher::JobConfig& config, const DataFound& data) {
  shard_server::DataSet set = data_set(config, data.train_records);
  set.began_with = data.began_with;
  set.pins = pins_of(data.pins, "train");
  return set;
}

shard_server::DataSet eval_set(const launcher::JobConfig& config, const DataFound& data) {
  shard_server::DataSet set = data_set(config, data.eval_records);
  set.pins = pins_of(data.pins, "eval");
  return set;
}

Result<ctl::JobMachineConfig> machine_config(const launcher::JobConfig& config,
                                             const DataFound& data) {
  ctl::JobMachineConfig machine;
  machine.job = config.job.id;
  ANTDT_TRY(machine.spec, job_spec(config, data));
  ANTDT_TRY(machine.control, controller_config(config));
  machine.ledger.train = train_set(config, data);
  machine.ledger.eval = eval_set(config, data);
  machine.ledger.drops_late = machine.spec.delivery == Delivery::kAtMostOnce;
  machine.data = data;
  machine.pins = data.pins;
  // Only the number of records is known here. What they are is known to the program, which may have
  // a fingerprint of its own.
  if (config.data.format == "index") machine.data.fingerprint.clear();
  machine.hang_after = config.failure.hang_after;
  machine.host_lost_after = config.failure.host_lost_after;
  for (const launcher::DeviceEntry& d : config.device) {
    machine.devices.push_back({d.workers, d.host, {d.name, d.max_micro_batch}});
  }
  machine.domains = Domains(config.domain);
  if (!data.pins.empty()) machine.spec.pinned_to = machine.domains;
  return machine;
}

}  // namespace antdt::jobd
