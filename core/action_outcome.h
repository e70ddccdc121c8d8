// What became of an action that a solution wished for.
//
// Reports hold the name as text, so that the name of a newer version stays readable; who compares
// asks by_name() first, which is empty for such a name.
#pragma once

#include <cstdint>

#include "core/names.h"

namespace antdt {

enum class ActionOutcome : std::uint8_t {
  kApplied,
  kAdvised,   // an operator may approve it
  kObserved,  // the controller only watches
  kRefused,   // it made no sense
};
constexpr auto names_of(ActionOutcome) {
  return names("applied", "advised", "observed", "refused");
}

}  // namespace antdt
