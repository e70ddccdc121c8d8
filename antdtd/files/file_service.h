// The file service: a child process of the agent for each run whose files somebody asks for.
// It alone touches the run directory, so that neither a disk that stands still nor another
// user's files ever concern the agent. It ends when the agent closes its end of the socket.
#pragma once

#include <string>

#include "antdtd/files/run_files.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

// The answer to one request: what was asked for, or Refused ("io", "missing", "corrupt",
// "invalid"). `files`: an error to open them is the answer to everything.
[[nodiscard]] wire::Packet answer_file_request(Result<RunFiles>& files,
                                               const wire::Packet& request);

// Serves the socket `fd` until its other end is closed; the process's exit code.
[[nodiscard]] int serve_files(int fd, const std::string& run_dir);

}  // namespace antdt::antdtd
