// The names that antdt-trainer has built in.
#include "trainer/torch/models/built_in.h"

#include "trainer/instruments/instruments.h"
#include "trainer/kit/registry.h"
#include "trainer/torch/optimizer.h"

namespace antdt {

Registry built_in_registry() {
  Registry registry;
  for (auto& [name, factory] : trainer::built_in_models()) registry.model(name, factory);
  for (auto& [name, factory] : trainer::built_in_optimizers()) registry.optimizer(name, factory);
  registry.impl().instruments = trainer::all_instruments();
  return registry;
}

}  // namespace antdt
