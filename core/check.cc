#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace antdt {

void check_failed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s: %.*s\n", file, line, condition,
               static_cast<int>(detail.size()), detail.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace antdt
