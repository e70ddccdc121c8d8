// An operator's word on an action that was only advised.
#pragma once

#include "core/wire/messages.h"

namespace antdt::wire {

// Operator to job daemon: do the action with this number (status and events name
// it), if it still makes sense. Answered by Done or Refused.
struct ApproveAction {
  std::uint64_t number = 0;
  std::string who;
  ANTDT_MESSAGE("approve") {
    v("number", m.number);
    v("who", m.who);
  }
};

}  // namespace antdt::wire
