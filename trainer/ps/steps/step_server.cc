#include "trainer/ps/steps/step_server.h"

#include <map>
#include <utility>

#include "core/check.h"
#include "core/overloaded.h"

namespace antdt::ps {

StepServer::Outcome StepServer::take(const steps::Input& message, Store& store) {
  steps::Effects effects;
  steps_.step(message, effects);
  Outcome outcome;
  const Overloaded perform{
      [&](const steps::ApplyStep& e) { apply(e, store); },
      [&](const steps::TakeBack&) {
        before_.take_back(store);
        ++taken_back_;
      },
      [&](const steps::ForgetBefore&) { before_.forget(); },
      [&](steps::WriteCut& e) { outcome.cut = std::move(e); },
      [&](const steps::RowsAreCurrent&) { outcome.answer = Current{}; },
      [&](const steps::PartIsStaged&) { outcome.answer = Staged{}; },
      [&](steps::RefuseStale& e) { outcome.answer = std::move(e); },
      [&](steps::RefuseUnfit& e) { outcome.answer = std::move(e); },
  };
  for (steps::Effect& effect : effects) std::visit(perform, effect);
  return outcome;
}

// Gradients of the same row are added in the order of ranks, so the sum is the same in every run.
void StepServer::apply(const steps::ApplyStep& step, Store& store) {
  before_.forget();
  std::map<std::uint32_t, std::vector<const Gradient*>> gradients;
  for (const auto& part : step.parts) {
    for (const TableGradient& of : part) gradients[of.table].push_back(&of.gradient);
  }
  if (gradients.empty()) return;
  store.set_rate(static_cast<float>(step.rate));
  const auto scale = static_cast<float>(1 / step.weight);
  for (const auto& [table, parts] : gradients) {
    const Gradient sum = merge(parts, store.tables()[table].width);
    before_.remember(store, table, sum.keys);
    store.update(table, sum.keys, sum.values, scale);
  }
}

}  // namespace antdt::ps
