// The effects of one kind that a server group has given.
#pragma once

#include <variant>
#include <vector>

#include "ctl/servers/server_group.h"

namespace antdt::ctl::testing {

template <class T>
std::vector<T> all(const servers::Effects& effects) {
  std::vector<T> found;
  for (const servers::Effect& e : effects) {
    if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
  }
  return found;
}

}  // namespace antdt::ctl::testing
