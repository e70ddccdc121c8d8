// Decodes a body by the kind that its envelope names. This is the only conversion from a name to a
// type.
#pragma once

#include <string_view>

#include "core/result.h"
#include "core/wire/codec.h"

namespace antdt::wire {

// If `kind` is that of one of the messages Ts, calls use() with the decoded `body`, a Result<T>,
// and returns true. False: a newer peer sent an unknown kind, or the kind belongs to another
// conversation.
template <class... Ts, class Use>
[[nodiscard]] bool dispatch(std::string_view kind, std::string_view body, Use use) {
  return ((kind == Ts::kKind && (use(decode<Ts>(body)), true)) || ...);
}

}  // namespace antdt::wire
