// The parts of the table behind keys() (keys.h), in its order. They are functions, so that the
// order in which files are initialised does not matter.
#pragma once

#include <vector>

#include "core/schema/keys.h"

namespace antdt::schema::key_table {

constexpr double kBig = 1e9;
constexpr double kAny = 9007199254740992.0;  // 2^53: whole in every JSON reader

const std::vector<Key>& job();
const std::vector<Key>& training();
const std::vector<Key>& operation();

}  // namespace antdt::schema::key_table
