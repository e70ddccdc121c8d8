#include "trainer/kit/maker.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/domain/pinned_data.h"
#include "trainer/data/data_config.h"
#include "trainer/kit/options_json.h"
#include "trainer/kit/own_reader.h"
#include "trainer/torch/device/device_engine.h"
#include "trainer/torch/evaluation.h"
#include "trainer/torch/ps_model.h"
#include "trainer/torch/threads/compute_threads.h"
#include "trainer/torch/thrown.h"

namespace antdt::trainer {
namespace {

template <class Factory>
std::vector<std::string> names(const std::map<std::string, Factory>& known) {
  std::vector<std::string> all;
  for (const auto& [name, factory] : known) all.push_back(name);
  return all;
}

std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& name : all) text += (text.empty() ? "" : ", ") + name;
  return text;
}

template <class Factory>
Result<Factory> named(const char* key, const std::map<std::string, Factory>& known,
                      const std::string& name) {
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  return fail(ErrorKind::kUsage, "{} '{}' is not known: {}", key, name,
              known.empty() ? "this program has none" : "this program has " + listed(names(known)));
}

// Returns what `make` makes. A null result, and an exception, are errors.
template <class T, class Make>
Result<T> made(const char* key, const std::string& name, Make make) {
  const std::string what = fmt::format("cannot make {} '{}'", key, name);
  return or_thrown(ErrorKind::kUsage, what, [&]() -> Result<T> {
    T part = make();
    if (!part) return fail(ErrorKind::kUsage, "{}: its factory made none", what);
    return part;
  });
}

}  // namespace

Maker::Maker(const Registry::Impl& registry, std::string config_json, TrainerConfig config,
             kit::Options options)
    : registry_(registry),
      config_json_(std::move(config_json)),
      config_(std::move(config)),
      options_(std::move(options)),
      settings_(settings_of(config_)) {}

Result<std::unique_ptr<Maker>> Maker::of(const Registry& registry, const std::string& config_json) {
  if (!registry.impl().problem.empty()) {
    return fail(ErrorKind::kUsage, "{}", registry.impl().problem);
  }
  ANTDT_TRY(TrainerConfig config, parse_trainer_config(config_json));
  ANTDT_TRY(kit::Options options, parse_options(config_json));
  return std::unique_ptr<Maker>(
      new Maker(registry.impl(), config_json, std::move(config), std::move(options)));
}

kit::Context Maker::context(const data::DataShape& shape) {
  return {settings_, options_, shapes_.emplace_back(shape_of(shape))};
}

// ------------------------------------------------------------------------ the data

Result<Split> Maker::open(data::Split which) {
  Split split;
  ANTDT_TRY(split.summary, data::build_index(config_json_, which, "", domain_));
  ANTDT_TRY(const PinnedData pins, parse_pinned_data(config_json_));
  // The records may all be in other domains.
  if (split.summary.records == 0 && !pins.has(data::name_of(which))) return split;
  if (config_.reader.empty()) {
    ANTDT_TRY(split.reader, data::open_reader(config_json_, which, "", domain_));
  } else {
    ANTDT_TRY(split.reader, own_reader(which, split.summary));
  }
  return split;
}

Result<std::unique_ptr<data::RecordReader>> Maker::own_reader(data::Split which,
                                                              data::DataSummary& summary) {
  const std::string& name = config_.reader;
  const bool for_evaluation = which == data::Split::kEval;
  ANTDT_TRY(const auto factory, named("trainer.reader", registry_.readers, name));
  if (!summary.files.empty()) {
    return fail(ErrorKind::kUsage,
                "trainer.reader '{}' reads the data itself: write data.format = \"index\" and "
                "data.records, or remove trainer.reader",
                name);
  }
  data::DataShape numbers;
  numbers.id_width = 1;
  numbers.id_rows = summary.records;
  const kit::Context from = context(numbers);
  ANTDT_TRY(auto own, made<std::unique_ptr<kit::Reader>>(
                          "trainer.reader", name, [&] { return factory(from, for_evaluation); }));
  // The members compare it.
  summary.built_by = own->fingerprint();
  ANTDT_TRY(auto reader, adapt_reader(name, std::move(own)));
  if (reader->records() != summary.records) {
    return fail(ErrorKind::kUsage,
                "trainer.reader '{}' has {} records, and data.{} is {}: write {} there", name,
                reader->records(), for_evaluation ? "eval_records" : "records", summary.records,
                reader->records());
  }
  return reader;
}

// ----------------------------------------------------------------------- the model

const Instrument* Maker::instrument() const {
  const auto found = registry_.instruments.find(config_.model);
  return found == registry_.instruments.end() ? nullptr : &found->second;
}

Result<std::shared_ptr<kit::Model>> Maker::model(const kit::Context& context) const {
  const auto found = registry_.models.find(config_.model);
  if (found != registry_.models.end()) return make_model(found->second, context);
  std::vector<std::string> known = names(registry_.models);
  for (const auto& [name, ignored] : registry_.instruments) known.push_back(name);
  return fail(ErrorKind::kUsage, "trainer.model '{}' is not known: this program has {}",
              config_.model, listed(known));
}

Result<kit::Metric> Maker::metric(const kit::Context& context) const {
  if (config_.metric.empty()) return kit::Metric(count_by_label);
  ANTDT_TRY(const auto factory, named("trainer.metric", registry_.metrics, config_.metric));
  return made<kit::Metric>("trainer.metric", config_.metric, [&] { return factory(context); });
}

Result<kit::Schedule> Maker::schedule(const kit::Context& context) const {
  if (config_.schedule.empty()) return kit::Schedule();
  ANTDT_TRY(const auto factory, named("trainer.schedule", registry_.schedules, config_.schedule));
  return made<kit::Schedule>("trainer.schedule", config_.schedule,
                             [&] { return factory(context); });
}

Result<std::unique_ptr<kit::Optimizer>> Maker::optimizer(const kit::Context& context,
                                                         std::size_t floats) const {
  ANTDT_TRY(const auto factory,
            named("trainer.optimizer", registry_.optimizers, config_.optimizer));
  return made<std::unique_ptr<kit::Optimizer>>("trainer.optimizer", config_.optimizer,
                                               [&] { return factory(context, floats); });
}

Result<DeviceChoice> Maker::device(WorkerId worker) const {
  if (instrument() != nullptr) return DeviceChoice{};
  return choose_device(config_, worker, config_.device == "cpu" ? 0 : cuda_devices());
}

Result<std::unique_ptr<Engine>> Maker::engine(const data::DataShape& shape, const MakePace& pace,
                                              const DeviceChoice& device) {
  if (const Instrument* instead = instrument()) return instead->engine({config_, shape, pace});
  set_compute_threads({config_.threads, config_.threads});
  const bool rows_are_served = config_.sync == SyncStrategy::kHybrid;
  const kit::Context from = context(rows_are_served ? without_rows(shape) : shape);
  Training training;
  ANTDT_TRY(training.model, model(from));
  ANTDT_TRY(training.metric, metric(from));
  ANTDT_TRY(training.schedule, schedule(from));
  ANTDT_TRY(training.table, table_gradients(config_.embedding_gradients));
  training.threads = config_.threads;
  if (rows_are_served) {
    return make_served_engine(config_, shape, std::move(training),
                              [&](std::size_t floats) { return optimizer(from, floats); });
  }
  if (!device.is_plain()) {
    const OptimizerOptions options{config_.optimizer, config_.learning_rate, config_.momentum,
                                   config_.weight_decay};
    return make_device_engine(std::move(training), options, shape, device);
  }
  ANTDT_TRY(const std::size_t floats, floats_of(*training.model));
  ANTDT_TRY(training.optimizer, optimizer(from, floats));
  return make_torch_engine(std::move(training), shape);
}

Result<std::unique_ptr<PsModel>> Maker::served(const data::DataShape& shape, const MakePace& pace) {
  if (const Instrument* instead = instrument()) return instead->served({config_, shape, pace});
  if (!config_.schedule.empty()) {
    return fail(
        ErrorKind::kUsage,
        "trainer.schedule '{}' is for trainer.sync = \"allreduce\": parameter servers apply "
        "what is pushed at the rate of the job; remove it",
        config_.schedule);
  }
  set_compute_threads({config_.threads, config_.threads});
  const kit::Context from = context(without_rows(shape));
  ServedModel served;
  while (served.models.size() < models_needed(config_)) {
    ANTDT_TRY(served.models.emplace_back(), model(from));
  }
  ANTDT_TRY(served.metric, metric(from));
  return make_torch_ps_model(config_, shape, std::move(served));
}

Status Maker::options_read() const { return all_read(options_); }

// --------------------------------------------------------------- asked from outside

Status check_job(const Registry& registry, const std::string& config_json) {
  ANTDT_TRY(const auto maker, Maker::of(registry, config_json));
  ANTDT_TRY(const Split train, maker->open(data::Split::kTrain));
  ANTDT_TRY(const Split eval, maker->open(data::Split::kEval));
  if (!train.reader) return fail(ErrorKind::kUsage, "the training data has no records");
  // Only a worker reports a device.
  if (!registry.impl().instruments.contains(maker->config().model)) {
    const data::DataShape& shape = train.reader->shape();
    // Workers may have a device where this process has none.
    ANTDT_RETURN_IF_ERROR(choose_device(maker->config(), WorkerId{}, 1));
    if (!in_collective(maker->config().sync)) {
      ANTDT_RETURN_IF_ERROR(maker->served(shape, {}));
    } else {
      ANTDT_RETURN_IF_ERROR(maker->engine(shape, {}));
    }
  }
  return maker->options_read();
}

std::string described(const Registry& registry) {
  const Registry::Impl& has = registry.impl();
  std::vector<std::string> models = names(has.models);
  for (const auto& [name, ignored] : has.instruments) models.push_back(name);
  const nlohmann::ordered_json json{{"schema", 1},
                                    {"models", models},
                                    {"readers", names(has.readers)},
                                    {"optimizers", names(has.optimizers)},
                                    {"metrics", names(has.metrics)},
                                    {"schedules", names(has.schedules)}};
  return json.dump(2);
}

}  // namespace antdt::trainer
