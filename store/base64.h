// Base64, in which JSON carries bytes. By OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antdt::store {

[[nodiscard]] std::string to_base64(std::string_view bytes);
// Nothing if `text` is not base64 with its padding.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace antdt::store
