// Draws `antdt top` as lines. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/top/top.h"

namespace antdt::launcher::top {

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

// At most `size.rows` lines of at most `size.columns` columns. Without colours the lines have no
// control characters at all, whatever jobs and hosts say. Sets top.page.
[[nodiscard]] std::vector<std::string> draw(Top& top, Size size, bool colours);

// Everything, for an output that is no terminal.
[[nodiscard]] std::vector<std::string> draw_whole(const Top& top);

}  // namespace antdt::launcher::top
