#include "trainer/instruments/instruments.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include "trainer/emulated/emulated_engine.h"
#include "trainer/emulated/emulated_ps_model.h"
#include "trainer/tally/ps_tally.h"
#include "trainer/tally/tally_engine.h"

namespace antdt::trainer {

namespace {

using From = Instrument::From;

// The record at which the process dies, see trainer/tally/README.md.
std::optional<std::uint64_t> poison() {
  const char* record = std::getenv("TALLY_POISON");
  if (record == nullptr) return {};
  return std::strtoull(record, nullptr, 10);
}

Instrument tally() {
  return {[](const From& from) { return make_tally_engine(from.shape, poison()); },
          [](const From& from) { return make_tally_ps_model(from.shape, 1, poison()); }};
}

Instrument tally3() {
  return {[](const From& from) -> Result<std::unique_ptr<Engine>> {
            if (from.config.sync == SyncStrategy::kHybrid) {
              return make_hosted_tally_engine(from.shape, poison());
            }
            return fail(ErrorKind::kUsage, "trainer.model 'tally3' is for parameter servers");
          },
          [](const From& from) { return make_tally_ps_model(from.shape, 3, poison()); }};
}

Instrument emulated() {
  return {[](const From& from) -> Result<std::unique_ptr<Engine>> {
            ANTDT_TRY(auto pace, from.pace());
            return make_emulated_engine(from.shape, from.config.emulation.parameters,
                                        std::move(pace));
          },
          [](const From& from) -> Result<std::unique_ptr<PsModel>> {
            ANTDT_TRY(auto pace, from.pace());
            return make_emulated_ps_model(from.shape, from.config.emulation.parameters,
                                          std::move(pace));
          }};
}

class InstrumentParts final : public Parts {
 public:
  using Parts::Parts;

  Result<std::unique_ptr<Engine>> engine(const data::DataShape& shape, const MakePace& pace,
                                         const ComputeDevice& /*device*/) override {
    ANTDT_TRY(const Instrument instrument, chosen());
    return instrument.engine({config(), shape, pace});
  }
  Result<std::unique_ptr<PsModel>> served(const data::DataShape& shape,
                                          const MakePace& pace) override {
    ANTDT_TRY(const Instrument instrument, chosen());
    return instrument.served({config(), shape, pace});
  }
  Status try_to_make(const data::DataShape& /*shape*/) override {
    ANTDT_RETURN_IF_ERROR(chosen());
    return {};
  }

 private:
  Result<std::unique_ptr<data::RecordReader>> own_reader(data::Split /*which*/,
                                                         data::DataSummary& /*summary*/) override {
    return fail(ErrorKind::kUsage, "trainer.reader '{}' is not known: this program has none",
                config().reader);
  }
  [[nodiscard]] Result<Instrument> chosen() const {
    const auto all = all_instruments();
    const auto found = all.find(config().model);
    if (found != all.end()) return found->second;
    return fail(
        ErrorKind::kUsage,
        "trainer.model '{}' is not one of tally, tally3 and emulated, which antdt-instrument "
        "has: write roles.worker.command = [\"antdt-trainer\"]",
        config().model);
  }
};

}  // namespace

std::map<std::string, Instrument> all_instruments() {
  return {{"tally", tally()}, {"tally3", tally3()}, {"emulated", emulated()}};
}

WorkerProgram instrument_program() {
  WorkerProgram program;
  program.parts = [](const std::string& config_json) -> Result<std::unique_ptr<Parts>> {
    ANTDT_TRY(TrainerConfig config, parse_trainer_config(config_json));
    return std::make_unique<InstrumentParts>(config_json, std::move(config));
  };
  for (const auto& [name, ignored] : all_instruments()) program.names.models.push_back(name);
  return program;
}

}  // namespace antdt::trainer
