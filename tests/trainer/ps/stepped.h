// The effects of one input on a server's state machine.
#pragma once

#include "trainer/ps/replica/replica.h"
#include "trainer/ps/server_node.h"

namespace antdt::ps {

[[nodiscard]] inline node::Effects stepped(ServerNode& machine, const node::Input& input) {
  node::Effects effects;
  machine.step(input, effects);
  return effects;
}
[[nodiscard]] inline replica::Effects stepped(Replica& machine, const replica::Input& input) {
  replica::Effects effects;
  machine.step(input, effects);
  return effects;
}

}  // namespace antdt::ps
