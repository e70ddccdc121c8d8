// Files of an unfinished checkpoint, and the host on which they were written: of all that a
// checkpoint has, or of what one parameter server wrote.
#pragma once

#include <string>
#include <vector>

#include "core/wire/training_messages.h"

namespace antdt::ctl::copies {

struct Part {
  std::string host;
  std::vector<wire::CheckpointFile> files;
};

}  // namespace antdt::ctl::copies
