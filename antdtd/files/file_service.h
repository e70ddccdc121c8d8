// The file service: a child process of the agent for each run whose files somebody requests. It
// alone touches the run directory, so neither a disk that does not answer nor another user's files
// can affect the agent. It ends when the agent closes its end of the socket.
#pragma once

#include <string>

#include "antdtd/files/run_files.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

// The answer to one request: the data, or Refused ("io", "missing", "corrupt", "invalid"). `files`:
// if they could not be opened, every answer is that error.
[[nodiscard]] wire::Packet answer_file_request(Result<RunFiles>& files,
                                               const wire::Packet& request);

// Serves the socket `fd` until its other end is closed; also answers what `antdt doctor` asks
// (antdtd/inspect/inspector.h). Returns the process's exit code.
[[nodiscard]] int serve_files(int fd, const std::string& run_dir);

}  // namespace antdt::antdtd
