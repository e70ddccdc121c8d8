// The private directory for sockets.
//
// Paths of sockets are limited to 107 characters, so they do not live in run
// directories: `$XDG_RUNTIME_DIR/antdt` if that variable is set, `/run/antdt`
// where /run can be written to (root), `/tmp/antdt-<uid>` otherwise.
#pragma once

#include <string>

#include "core/result.h"

namespace antdt {

// The directory, made with mode 0700 if it is missing. An error if it belongs
// to somebody else, is a link, or others may enter it and that cannot be mended.
[[nodiscard]] Result<std::string> runtime_directory();
// The same checks for a directory of the caller's choice.
[[nodiscard]] Status ensure_private_directory(const std::string& path);

}  // namespace antdt
