// Files of a run on another host: between the job daemon (or the launcher) and the file
// service of that host's agent (antdtd/files/file_service.h).
//
// They travel on a connection of their own to the agent's port, so that no control message
// waits behind them. The connection says FilesAttach first; each later request names paths
// below the run directory of that message and is answered once, with the same seq, or with
// Refused. Paths are "checkpoints/<directory>/<file>" and, to be read only, "logs/<file>".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/training_messages.h"

namespace antdt::wire {

// No chunk has more bytes; a larger request is refused.
inline constexpr std::uint64_t kMaxFileChunk = 4ULL * 1024 * 1024;

// The first message of the connection: whose files are meant. Answered by FilesReady.
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

// Which directory is it that this host has as the run directory? `name` is that of a file in
// checkpoints/ that whoever comes first makes with an identity in it: hosts that answer the
// same share the directory.
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
  std::uint64_t bytes = 0;  // of a file
  bool whole = false;       // of a checkpoint: it has its MANIFEST.json
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
  std::vector<FileEntry> checkpoints;  // names in checkpoints/, unfinished ones too
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
  std::string data;         // shorter than asked for at the file's end
  std::uint64_t size = 0;   // of the file now
  std::uint64_t inode = 0;  // another one: the file was replaced
  ANTDT_MESSAGE("file-data") {
    v("data", m.data);
    v("size", m.size);
    v("inode", m.inode);
  }
};

// Into an unfinished checkpoint (a directory whose name begins with ".tmp-"), which is made
// where it is not there. At offset 0 the file begins anew.
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

// How much of a file is there, and its checksum; a file that is not there has 0 bytes.
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

// Makes the unfinished checkpoint `from` the checkpoint `to`: every file has to be there with
// its size and checksum, is synced, and then the directory gets its name. A file that is not
// as it should be is removed, so that it is sent anew. Done already is done.
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
// Removes a directory (or a probe's file) in checkpoints/. What is not there is removed.
struct FileRemove {
  std::string name;
  ANTDT_MESSAGE("file-remove") { v("name", m.name); }
};

}  // namespace antdt::wire
