// Operations of an agent of root in places that another user controls. That user cannot divert
// them: no link is followed, and no other file or process is touched.
//
//   STATE/jobs/<job>/<w0.1>/        root's, 0711: start, cgroup, and exit if the agent wrote it
//   STATE/jobs/<job>/<w0.1>/own/    the user's, 0770 with the agent's group: pid, claim,
//                                   exit.part, exit (antdtd/shim/shim_files.h)
//   SOCKETS/w<uid>.sock             where the user's workers reach the agent: the user's, 0600
//   SOCKETS/u<uid>/                 the user's, 0770 with the agent's group: workers.sock, a
//                                   link to that socket, and sockets of parameter servers
//
// The agent reaches the user's two directories by its group, so it needs no right to override
// permissions; nobody else can enter them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/os/user.h"
#include "core/result.h"

namespace antdt::antdtd {

// The content of a regular file of `owner` that is not a link and has no other name, at most
// `limit` bytes. Never waits for a writer.
[[nodiscard]] Result<std::string> read_file_of(uid_t owner, const std::string& path,
                                               std::size_t limit);

// Gives a directory of this process to `user`. This process may still use it, by its group. The
// parent directory must belong to this process.
[[nodiscard]] Status give_directory(const UserIdentity& user, const std::string& path);
// Makes an empty file of `user`, in a directory that nobody else can change yet.
[[nodiscard]] Status make_file_of(const UserIdentity& user, const std::string& path);

// Makes a directory of this process's user through which others may pass but which they cannot
// list, and its missing parents.
[[nodiscard]] Status ensure_passable_directory(const std::string& path);
// "" if every user can pass through `path` and all its parents; otherwise the first that bars them.
[[nodiscard]] std::string who_bars(const std::string& path);

// The path at which the workers of `user` find the agent (their ANTDT_SOCKET).
[[nodiscard]] std::string workers_socket_of(const std::string& socket_dir, uid_t user);
// The path to which the agent binds it.
[[nodiscard]] std::string bound_socket_of(const std::string& socket_dir, uid_t user);
// Makes the bound socket the user's, and makes the directory in which the user finds it.
[[nodiscard]] Status hand_over_socket(const std::string& socket_dir, const UserIdentity& user);

// Like signal_process of core/os/process.h, for a process that must belong to `owner`; kRefused if
// it does not.
[[nodiscard]] Status signal_process_of(uid_t owner, pid_t pid, std::uint64_t start_time,
                                       int signal);

}  // namespace antdt::antdtd
