// Files of a run on another host: between the job daemon (or the launcher) and the file service of
// that host's agent (antdtd/files/file_service.h).
//
// They use a connection of their own to the agent's port, so that no control message waits behind
// them. The connection sends FilesAttach first. Each later request names paths below that message's
// run directory and is answered once, with the same seq, or with Refused. Paths are
// "checkpoints/<directory>/<file>" and, for reading only, "logs/<file>".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/training_messages.h"

namespace antdt::wire {

// The largest chunk; a larger request is refused.
inline constexpr std::uint64_t kMaxFileChunk = 4ULL * 1024 * 1024;

// The first message of the connection: the job and its run directory. Answered by FilesReady.
struct FilesAttach {
  std::string run_dir;  // absolute
  ANTDT_MESSAGE("files-attach") { v("run_dir", m.run_dir); }
};
struct FilesReady {
  ANTDT_MESSAGE("files-ready") {}
};
// The connection is not used any more.
struct FilesDetach {
  ANTDT_MESSAGE("files-detach") {}
};

// Identifies the directory that this host has as the run directory. `name` is a file in
// checkpoints/. The first host to be asked makes it with a random identity in it, so hosts with the
// same answer share the directory. It takes the directory for the envelope's job, and is refused
// (invalid) where that belongs to another job.
struct FileProbe {
  std::string name;
  ANTDT_MESSAGE("file-probe") { v("name", m.name); }
};
struct FileProbed {
  std::string identity;
  ANTDT_MESSAGE("file-probed") { v("identity", m.identity); }
};

struct FileEntry {
  std::string name;
  std::uint64_t bytes = 0;  // for a file
  bool whole = false;       // for a checkpoint: it has its MANIFEST.json
  ANTDT_PART {
    v("name", m.name);
    v("bytes", m.bytes);
    v("whole", m.whole);
  }
};
struct FileList {
  ANTDT_MESSAGE("file-list") {}
};
struct FileListed {
  std::vector<FileEntry> checkpoints;  // names in checkpoints/, including unfinished ones
  std::vector<FileEntry> logs;
  ANTDT_MESSAGE("file-listed") {
    v("checkpoints", m.checkpoints);
    v("logs", m.logs);
  }
};

struct FileRead {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  ANTDT_MESSAGE("file-read") {
    v("path", m.path);
    v("offset", m.offset);
    v("bytes", m.bytes);
  }
};
struct FileData {
  std::string data;         // shorter than requested at the file's end
  std::uint64_t size = 0;   // present size of the file
  std::uint64_t inode = 0;  // changes when the file is replaced
  ANTDT_MESSAGE("file-data") {
    v("data", m.data);
    v("size", m.size);
    v("inode", m.inode);
  }
};

// Writes into an unfinished checkpoint (a directory whose name begins with ".tmp-"), which is made
// if it is missing. At offset 0 the file begins anew.
struct FileWrite {
  std::string path;
  std::uint64_t offset = 0;
  std::string data;
  ANTDT_MESSAGE("file-write") {
    v("path", m.path);
    v("offset", m.offset);
    v("data", m.data);
  }
};
struct FileDone {
  ANTDT_MESSAGE("file-done") {}
};

// Asks how much of a file is there, and for its checksum; a missing file has 0 bytes.
struct FileSum {
  std::string path;
  ANTDT_MESSAGE("file-sum") { v("path", m.path); }
};
struct FileSummed {
  std::uint64_t bytes = 0;
  std::string xxh3;  // 16 hex digits
  ANTDT_MESSAGE("file-summed") {
    v("bytes", m.bytes);
    v("xxh3", m.xxh3);
  }
};

// Makes the unfinished checkpoint `from` the checkpoint `to`: every file must be there with its
// size and checksum, is synced, and then the directory is renamed. A file that differs is removed,
// so that it is sent again. A checkpoint `to` that is there already stays if it has these files,
// else it is replaced. Repeating it has no effect.
struct FileCommit {
  std::string from;
  std::string to;
  std::vector<CheckpointFile> files;
  ANTDT_MESSAGE("file-commit") {
    v("from", m.from);
    v("to", m.to);
    v("files", m.files);
  }
};
// Removes a directory (or a probe's file) in checkpoints/. It is no error if it does not exist.
struct FileRemove {
  std::string name;
  ANTDT_MESSAGE("file-remove") { v("name", m.name); }
};

}  // namespace antdt::wire
