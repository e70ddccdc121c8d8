// The effects of one step of a controller.
#pragma once

#include "ctl/control/controller.h"

namespace antdt::ctl {

inline control::Effects effects_of(Controller& controller, const control::Input& input,
                                   MonoTime now) {
  control::Effects effects;
  controller.step(input, now, effects);
  return effects;
}

}  // namespace antdt::ctl
