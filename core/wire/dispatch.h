// A body by the kind that its envelope names: the one way to go from a name to a type.
#pragma once

#include <string_view>

#include "core/result.h"
#include "core/wire/codec.h"

namespace antdt::wire {

// If `kind` is that of one of the messages Ts, calls use() with what `body` is as that message,
// a Result<T>, and is true. False: a newer peer says something that is not known here, or the kind
// is for another conversation.
template <class... Ts, class Use>
[[nodiscard]] bool dispatch(std::string_view kind, std::string_view body, Use use) {
  return ((kind == Ts::kKind && (use(decode<Ts>(body)), true)) || ...);
}

}  // namespace antdt::wire
