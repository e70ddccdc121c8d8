// The private directory for sockets.
//
// Paths of sockets are limited to 107 characters, so they do not live in run
// directories: `$XDG_RUNTIME_DIR/antdt` if that variable is set, `/run/antdt`
// where /run can be written to (root), `/tmp/antdt-<uid>` otherwise.
#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"

namespace antdt {

// The directory, made with mode 0700 if it is missing. An error if it belongs
// to somebody else, is a link, or others may enter it and that cannot be mended.
[[nodiscard]] Result<std::string> runtime_directory();
// The same checks for a directory of the caller's choice.
[[nodiscard]] Status ensure_private_directory(const std::string& path);

// Where a process of a job binds a socket of its own: beside that of its agent,
// which removes it when the process has ended, however it did.
[[nodiscard]] std::string process_socket(const std::string& agent_socket, const std::string& job,
                                         Member member);
void remove_process_socket(const std::string& agent_socket, const std::string& job, Member member);

}  // namespace antdt
