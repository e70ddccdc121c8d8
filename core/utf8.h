// Text that may be any bytes, as UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace antdt {

// `text` without control characters (a space stands for each) and with a '?' for each byte that is
// not part of a valid character (RFC 3629); no character begins or ends behind `most` bytes.
[[nodiscard]] std::string valid_utf8(std::string_view text, std::size_t most);

}  // namespace antdt
