#include "trainer/kit/maker.h"

#include <map>
#include <utility>
#include <vector>

#include "trainer/kit/options_json.h"
#include "trainer/kit/own_reader.h"
#include "trainer/torch/device/device_engine.h"
#include "trainer/torch/device/precision.h"
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
    : Parts(std::move(config_json), std::move(config)),
      registry_(registry),
      options_(std::move(options)),
      settings_(settings_of(this->config())) {}

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

Result<std::unique_ptr<data::RecordReader>> Maker::own_reader(data::Split which,
                                                              data::DataSummary& summary) {
  const std::string& name = config().reader;
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
  const std::string what = fmt::format("trainer.reader '{}' cannot name its data", name);
  ANTDT_TRY(summary.built_by, or_thrown(ErrorKind::kUsage, what, [&]() -> Result<std::string> {
              return own->fingerprint();
            }));
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
  const auto found = registry_.instruments.find(config().model);
  return found == registry_.instruments.end() ? nullptr : &found->second;
}

Result<std::shared_ptr<kit::Model>> Maker::model(const kit::Context& context) const {
  const auto found = registry_.models.find(config().model);
  if (found != registry_.models.end()) return make_model(found->second, context);
  std::vector<std::string> known = names(registry_.models);
  for (const auto& [name, ignored] : registry_.instruments) known.push_back(name);
  return fail(ErrorKind::kUsage, "trainer.model '{}' is not known: this program has {}",
              config().model, listed(known));
}

Result<kit::Metric> Maker::metric(const kit::Context& context) const {
  if (config().metric.empty()) return kit::Metric(count_by_label);
  ANTDT_TRY(const auto factory, named("trainer.metric", registry_.metrics, config().metric));
  return made<kit::Metric>("trainer.metric", config().metric, [&] { return factory(context); });
}

Result<kit::Schedule> Maker::schedule(const kit::Context& context) const {
  if (config().schedule.empty()) return kit::Schedule();
  ANTDT_TRY(const auto factory, named("trainer.schedule", registry_.schedules, config().schedule));
  return made<kit::Schedule>("trainer.schedule", config().schedule,
                             [&] { return factory(context); });
}

Result<std::unique_ptr<kit::Optimizer>> Maker::optimizer(const kit::Context& context,
                                                         std::size_t floats) const {
  ANTDT_TRY(const auto factory,
            named("trainer.optimizer", registry_.optimizers, config().optimizer));
  return made<std::unique_ptr<kit::Optimizer>>("trainer.optimizer", config().optimizer,
                                               [&] { return factory(context, floats); });
}

Result<ComputeDevice> Maker::device(WorkerId worker) const {
  if (instrument() != nullptr) return ComputeDevice{};
  ANTDT_TRY(const DeviceChoice choice,
            choose_device(config(), worker, config().device == "cpu" ? 0 : cuda_devices()));
  if (choice.device.is_cpu()) return ComputeDevice{};
  return ComputeDevice{static_cast<std::uint32_t>(choice.device.index()), device_class(choice)};
}

Result<std::unique_ptr<Engine>> Maker::engine(const data::DataShape& shape, const MakePace& pace,
                                              const ComputeDevice& device) {
  if (const Instrument* instead = instrument()) return instead->engine({config(), shape, pace});
  DeviceChoice choice;
  ANTDT_TRY(choice.precision, parse_precision(config().precision));
  if (device.cuda) {
    choice.device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*device.cuda));
  }
  return torch_engine(shape, choice);
}

Result<std::unique_ptr<Engine>> Maker::torch_engine(const data::DataShape& shape,
                                                    const DeviceChoice& choice) {
  set_compute_threads({config().threads, config().threads});
  const bool rows_are_served = config().sync == SyncStrategy::kHybrid;
  const kit::Context from = context(rows_are_served ? without_rows(shape) : shape);
  Training training;
  ANTDT_TRY(training.model, model(from));
  ANTDT_TRY(training.metric, metric(from));
  ANTDT_TRY(training.schedule, schedule(from));
  ANTDT_TRY(training.table, table_gradients(config().embedding_gradients));
  training.threads = config().threads;
  if (rows_are_served) {
    return make_served_engine(config(), shape, std::move(training),
                              [&](std::size_t floats) { return optimizer(from, floats); });
  }
  if (!choice.is_plain()) {
    const OptimizerOptions options{config().optimizer, config().learning_rate, config().momentum,
                                   config().weight_decay};
    return make_device_engine(std::move(training), options, shape, choice);
  }
  ANTDT_TRY(const std::size_t floats, floats_of(*training.model));
  ANTDT_TRY(training.optimizer, optimizer(from, floats));
  return make_torch_engine(std::move(training), shape);
}

Result<std::unique_ptr<PsModel>> Maker::served(const data::DataShape& shape, const MakePace& pace) {
  if (const Instrument* instead = instrument()) return instead->served({config(), shape, pace});
  if (!config().schedule.empty()) {
    return fail(
        ErrorKind::kUsage,
        "trainer.schedule '{}' is for trainer.sync = \"allreduce\": parameter servers apply "
        "what is pushed at the rate of the job; remove it",
        config().schedule);
  }
  set_compute_threads({config().threads, config().threads});
  const kit::Context from = context(without_rows(shape));
  ServedModel served;
  while (served.models.size() < models_needed(config())) {
    ANTDT_TRY(served.models.emplace_back(), model(from));
  }
  ANTDT_TRY(served.metric, metric(from));
  return make_torch_ps_model(config(), shape, std::move(served));
}

Status Maker::try_to_make(const data::DataShape& shape) {
  // Only a worker reports a device.
  if (instrument() != nullptr) return {};
  // Workers may have a device where this process has none.
  ANTDT_RETURN_IF_ERROR(choose_device(config(), WorkerId{}, 1));
  if (!in_collective(config().sync)) {
    ANTDT_RETURN_IF_ERROR(served(shape, {}));
  } else {
    ANTDT_RETURN_IF_ERROR(torch_engine(shape, {}));
  }
  return {};
}

Status Maker::options_read() const { return all_read(options_); }

WorkerProgram program_of(const Registry& registry) {
  WorkerProgram program;
  program.parts = [&registry](const std::string& config_json) -> Result<std::unique_ptr<Parts>> {
    return Maker::of(registry, config_json);
  };
  const Registry::Impl& has = registry.impl();
  program.names = {names(has.models), names(has.readers), names(has.optimizers), names(has.metrics),
                   names(has.schedules)};
  for (const auto& [name, ignored] : has.instruments) program.names.models.push_back(name);
  return program;
}

}  // namespace antdt::trainer
