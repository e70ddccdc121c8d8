// A host that an operator drains: its agent starts no process of any job until that ends.
#pragma once

#include <cstddef>
#include <string>

#include "core/wire/message.h"

namespace antdt::wire {

struct Drain {
  // How many bytes of a reason an agent keeps.
  static constexpr std::size_t kMostOfAReason = 500;
  std::string who;  // "root@h1"
  std::string reason;
  ANTDT_PART {
    v("who", m.who);
    v("reason", m.reason);
  }
};

// For people: "by root@h1: new memory"
[[nodiscard]] inline std::string to_text(const Drain& drain) {
  return "by " + drain.who + (drain.reason.empty() ? "" : ": " + drain.reason);
}

}  // namespace antdt::wire
