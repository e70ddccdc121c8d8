// What an agent of root does in places that another user controls, without being led
// elsewhere by that user: no link is followed, no other file or process is touched.
//
//   STATE/jobs/<job>/<w0.1>/        root's, 0711: start, cgroup, and exit if the agent wrote it
//   STATE/jobs/<job>/<w0.1>/own/    the user's, 0770 with the agent's group: pid, claim,
//                                   exit.part, exit (antdtd/shim/shim_files.h)
//   SOCKETS/w<uid>.sock             where the user's workers reach the agent: the user's, 0600
//   SOCKETS/u<uid>/                 the user's, 0770 with the agent's group: workers.sock, a
//                                   link to that socket, and sockets of parameter servers
//
// The agent reaches the user's two directories by its group, so it needs no right to
// override permissions; nobody else can enter them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/os/user.h"
#include "core/result.h"

namespace antdt::antdtd {

// The content of a regular file of `owner` that is no link and has no other name, at most
// `limit` bytes of it. Never waits for a writer.
[[nodiscard]] Result<std::string> read_file_of(uid_t owner, const std::string& path,
                                               std::size_t limit);

// Gives a directory of this process to `user`; this process may use it further, by its group.
// Its parent belongs to this process.
[[nodiscard]] Status give_directory(const UserIdentity& user, const std::string& path);
// A new empty file of `user`, in a directory that nobody else can change yet.
[[nodiscard]] Status make_file_of(const UserIdentity& user, const std::string& path);

// A directory of this process's own that others may pass through but not list: made with what
// is missing above it.
[[nodiscard]] Status ensure_passable_directory(const std::string& path);
// "" if every user can pass through `path` and all above it; else which one they cannot.
[[nodiscard]] std::string who_bars(const std::string& path);

// Where the workers of `user` find the agent (their ANTDT_SOCKET).
[[nodiscard]] std::string workers_socket_of(const std::string& socket_dir, uid_t user);
// Where the agent binds it.
[[nodiscard]] std::string bound_socket_of(const std::string& socket_dir, uid_t user);
// Makes the bound socket the user's, and the directory in which the user finds it.
[[nodiscard]] Status hand_over_socket(const std::string& socket_dir, const UserIdentity& user);

// signal_process of core/os/process.h, for a process that must be one of `owner`; kRefused if
// it is not.
[[nodiscard]] Status signal_process_of(uid_t owner, pid_t pid, std::uint64_t start_time,
                                       int signal);

}  // namespace antdt::antdtd
