// The names that antdt-trainer has built in.
#include "trainer/torch/models/built_in.h"

#include <cstdlib>
#include <optional>

#include "trainer/emulated/emulated_engine.h"
#include "trainer/emulated/emulated_ps_model.h"
#include "trainer/kit/registry.h"
#include "trainer/tally/ps_tally.h"
#include "trainer/tally/tally_engine.h"
#include "trainer/torch/optimizer.h"

namespace antdt {

namespace {

using From = trainer::Instrument::From;

// The record at which the process dies, see trainer/tally/README.md.
std::optional<std::uint64_t> poison() {
  const char* record = std::getenv("TALLY_POISON");
  if (record == nullptr) return {};
  return std::strtoull(record, nullptr, 10);
}

trainer::Instrument tally() {
  return {[](const From& from) { return trainer::make_tally_engine(from.shape, poison()); },
          [](const From& from) { return trainer::make_tally_ps_model(from.shape, 1, poison()); }};
}

trainer::Instrument tally3() {
  return {[](const From& from) -> Result<std::unique_ptr<trainer::Engine>> {
            if (from.config.sync == SyncStrategy::kHybrid) {
              return trainer::make_hosted_tally_engine(from.shape, poison());
            }
            return fail(ErrorKind::kUsage, "trainer.model 'tally3' is for parameter servers");
          },
          [](const From& from) { return trainer::make_tally_ps_model(from.shape, 3, poison()); }};
}

trainer::Instrument emulated() {
  return {[](const From& from) -> Result<std::unique_ptr<trainer::Engine>> {
            ANTDT_TRY(auto pace, from.pace());
            return trainer::make_emulated_engine(from.shape, from.config.emulation.parameters,
                                                 std::move(pace));
          },
          [](const From& from) -> Result<std::unique_ptr<trainer::PsModel>> {
            ANTDT_TRY(auto pace, from.pace());
            return trainer::make_emulated_ps_model(from.shape, from.config.emulation.parameters,
                                                   std::move(pace));
          }};
}

}  // namespace

Registry built_in_registry() {
  Registry registry;
  for (auto& [name, factory] : trainer::built_in_models()) registry.model(name, factory);
  for (auto& [name, factory] : trainer::built_in_optimizers()) registry.optimizer(name, factory);
  auto& instruments = registry.impl().instruments;
  instruments.emplace("tally", tally());
  instruments.emplace("tally3", tally3());
  instruments.emplace("emulated", emulated());
  return registry;
}

}  // namespace antdt
