// Converts an event that a primary copies to its backup into a message and back.
//
// A message that the primary received keeps its encoding: `kind` and `body` are those of the
// message. The outcome of reading or writing files is a PsSaved with a kind of its own. The sender
// is named as a member, not by the link that it used, because the backup has no such link.
#pragma once

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/replica.h"

namespace antdt::ps {

[[nodiscard]] wire::PsCopied to_wire(const replica::EventCopied& copied);
// `generation`: that of the group that primary and backup serve.
[[nodiscard]] Result<replica::EventCopied> from_wire(const wire::PsCopied& copied,
                                                     Generation generation);

}  // namespace antdt::ps
