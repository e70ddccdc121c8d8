// --set key=value: changes to what job.toml says.
#pragma once

#include <string>
#include <vector>

#include "launcher/config/problems.h"
#include "launcher/config/toml.h"

namespace antdt::launcher {

// Puts each "a.b.c=value" into `root`, tables made where they are missing. The
// value is TOML; where it is not, or where the key wants a string, it is the
// string as it stands, and where the key wants a list, a list of it alone.
void apply_overrides(toml::table& root, const std::vector<std::string>& overrides, Places& places,
                     Problems& problems);

}  // namespace antdt::launcher
