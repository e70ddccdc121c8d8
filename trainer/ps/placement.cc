#include "trainer/ps/placement.h"

namespace antdt::ps {

Result<Consistency> consistency_of(SyncStrategy sync) {
  if (sync == SyncStrategy::kPsBsp) return Consistency::kBarrier;
  if (sync == SyncStrategy::kPsSsp) return Consistency::kBounded;
  if (sync == SyncStrategy::kPsAsp || is_shadow(sync)) return Consistency::kUnbounded;
  if (sync == SyncStrategy::kHybrid) return Consistency::kSteps;
  return fail(ErrorKind::kUsage, "sync = \"{}\" needs no parameter servers", sync);
}

}  // namespace antdt::ps
