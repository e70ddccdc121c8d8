#include "trainer/ps/placement.h"

namespace antdt::ps {

Result<Consistency> parse_consistency(const std::string& sync) {
  if (sync == "ps-bsp") return Consistency::kBarrier;
  if (sync == "ps-ssp") return Consistency::kBounded;
  if (sync == "ps-asp") return Consistency::kUnbounded;
  return fail(ErrorKind::kUsage, "sync = \"{}\" needs no parameter servers", sync);
}

}  // namespace antdt::ps
