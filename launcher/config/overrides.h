// --set key=value: changes to job.toml.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/config/problems.h"
#include "launcher/config/toml.h"

namespace antdt::launcher {

// Puts each "a.b.c=value" into `root`, making missing tables. The value is TOML. If it is not, or
// if the key requires a string, the text itself is the value; if the key requires a list, the value
// becomes its only item.
void apply_overrides(toml::table& root, const std::vector<std::string>& overrides, Places& places,
                     Problems& problems);

// "{ workers = [\"w1\"], slowdown = 3 }": what people wrote as keys of one table of `list`, such as
// "workers=w1", each as above. kUsage.
[[nodiscard]] Result<std::string> inline_table(const std::string& list,
                                               const std::vector<std::string>& keys);

}  // namespace antdt::launcher
