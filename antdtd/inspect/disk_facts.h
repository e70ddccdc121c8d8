// How a directory's disk is: tried with files that are removed again.
#pragma once

#include <map>
#include <string>

#include "core/result.h"
#include "core/wire/inspect_messages.h"

namespace antdt::antdtd {

// Remembers the probes that it made, and removes them at its end. So whoever compares hosts keeps
// each of them until all have answered.
class DiskFacts {
 public:
  DiskFacts() = default;
  ~DiskFacts();
  DiskFacts(const DiskFacts&) = delete;
  DiskFacts& operator=(const DiskFacts&) = delete;

  // Looks at the nearest directory at or above `directory` that exists. kUsage for a path that is
  // not absolute or no name for a probe. What is wrong with the disk is part of the answer.
  [[nodiscard]] Result<wire::FileDiskTold> look(const std::string& directory,
                                                const wire::FileDisk& request);

 private:
  [[nodiscard]] Result<std::string> identity_in(const std::string& directory,
                                                const std::string& probe);
  std::map<std::string, std::string> probes_;  // the identity in each that was made, by its path
};

}  // namespace antdt::antdtd
