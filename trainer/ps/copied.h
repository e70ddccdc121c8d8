// An event that a primary copies to its backup, as a message and back.
//
// What was heard keeps its own encoding: `kind` and `body` are those of the message. What
// became of files is a PsSaved under a kind of its own. Who asked is a member; over which
// link it asked means nothing to the backup, which would find nobody there.
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/replica.h"

namespace antdt::ps {

[[nodiscard]] wire::PsCopied to_wire(const replica::Copied& copied);
// `generation`: of the group that both are in.
[[nodiscard]] Result<replica::Copied> from_wire(const wire::PsCopied& copied,
                                                Generation generation);

}  // namespace antdt::ps
