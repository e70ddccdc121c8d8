#include "ctl/control/solutions/none.h"

namespace antdt::ctl::solutions {

Decision None::decide(const ClusterView& /*view*/, MonoTime /*now*/) { return {}; }

}  // namespace antdt::ctl::solutions
