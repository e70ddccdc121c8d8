// The private directory for sockets.
//
// Paths of sockets are limited to 107 characters, so sockets are not in run directories but in
// `$XDG_RUNTIME_DIR/antdt` if that variable is set, `/run/antdt` if /run is writable (for root),
// and `/tmp/antdt-<uid>` otherwise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"

namespace antdt {

// The directory, made with mode 0700 if it is missing. An error if it belongs to another user, is a
// link, or can be entered by others and that cannot be changed.
[[nodiscard]] Result<std::string> runtime_directory();
// The same checks for a directory of the caller's choice. `else_set`: the variable with which the
// user names another one.
[[nodiscard]] Status ensure_private_directory(const std::string& path,
                                              const char* else_set = "XDG_RUNTIME_DIR");

// Sets the times of the directory and of all that is in it to now. In /tmp, systemd-tmpfiles and
// its like remove what nobody has touched for some days, and do not know that the files of a
// process that runs for a month are read when it fails. Follows no link, and does not enter
// directories of other users, who could put links there meanwhile.
void keep_from_cleaners(const std::string& directory);

// Keeps directories of this process from cleaners for as long as tend() is called.
class KeptDirectories {
 public:
  explicit KeptDirectories(std::vector<std::string> directories = {})
      : directories_(std::move(directories)) {}
  // Touches all of them in the first call and then once a day.
  void tend(MonoTime now);

 private:
  std::vector<std::string> directories_;
  MonoTime next_{};
};

// Path of a socket that a process of a job binds itself: beside the socket of its agent, which
// removes it when the process has ended in whatever way.
[[nodiscard]] std::string process_socket(const std::string& agent_socket, const std::string& job,
                                         Member member);
void remove_process_socket(const std::string& agent_socket, const std::string& job, Member member);

}  // namespace antdt
