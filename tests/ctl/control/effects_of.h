// The effects of one step of a controller.
#pragma once

#include <optional>
#include <string>

#include "ctl/control/controller.h"

namespace antdt::ctl {

inline control::Effects effects_of(Controller& controller, const control::Input& input,
                                   MonoTime now) {
  control::Effects effects;
  controller.step(input, now, effects);
  return effects;
}

// What is recorded of it, if what is to be performed can be done.
inline std::optional<control::RecordAction> recorded(const control::Effect& effect, MonoTime now) {
  if (const auto* record = std::get_if<control::RecordAction>(&effect)) return *record;
  const auto* perform = std::get_if<control::PerformAction>(&effect);
  if (perform == nullptr) return {};
  return control::RecordAction{now, std::string(kind_of(perform->action)),
                               target_of(perform->action), perform->reason,
                               ActionOutcome::kApplied};
}

}  // namespace antdt::ctl
