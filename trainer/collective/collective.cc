#include "trainer/collective/collective.h"

#include <algorithm>
#include <vector>

namespace antdt::trainer {

Status Collective::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t bytes = mine.size();
  if (all.size() != bytes * size()) {
    return fail(ErrorKind::kInternal, "cannot gather {} bytes of each of {} members into {} bytes",
                bytes, size(), all.size());
  }
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(rank() * bytes));
  return allgather_parts(std::vector<std::size_t>(size(), bytes), all);
}

}  // namespace antdt::trainer
