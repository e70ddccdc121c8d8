// Mapped files whose content cannot be read any more.
//
// The kernel answers a read of a mapped page with SIGBUS if the disk or the file server reports an
// error, if the file was cut short, or, on a network filesystem, if another host removed or
// replaced it. That is no fault of the program or of the record that it was reading, so a worker
// says which file it was, and ends with an exit code that says so to the job.
#pragma once

#include <cstddef>
#include <string>

namespace antdt::data {

// A file's entry in the list in which a signal handler looks up an address. Entries are used again
// and never freed, since the handler may look at any of them at any time.
struct Mapping;
[[nodiscard]] Mapping* list_mapping(const std::string& path, const void* begin, std::size_t bytes);
void drop_mapping(Mapping* mapping);

// From now on a SIGBUS at an address of a listed file writes a line to the standard error, which
// begins with `program`, and ends the process with `exit_code`. Any other SIGBUS does what it did
// before. For the main() of a program of ours: the signals of others are theirs.
void end_when_a_file_is_lost(const std::string& program, int exit_code);

}  // namespace antdt::data
