#include "ctl/control/solutions/dds.h"

namespace antdt::ctl::solutions {

Decision Dds::decide(const ClusterView& /*view*/, MonoTime /*now*/) { return {}; }

}  // namespace antdt::ctl::solutions
