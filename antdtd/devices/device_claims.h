// The devices that this agent leases, claimed among all agents of the machine, so that no two of
// them lease the same one. A claim is a lock of a file with the device's UUID in its name
// (antdtd/shim/claim_file.h). The agent takes it before the first process of a lease begins, and
// each process's shim joins it, so it lasts as long as the processes, whatever happens to the
// agent. Devices without a UUID, which are only counted, are not claimed.
#pragma once

#include <map>
#include <set>
#include <string>

#include "antdtd/shim/claim_file.h"
#include "core/result.h"

namespace antdt::antdtd {

class DeviceClaims {
 public:
  // Where all users may make files, until the machine is started anew.
  static constexpr const char* kDirectory = "/run/lock";

  explicit DeviceClaims(std::string directory = kDirectory) : directory_(std::move(directory)) {}

  // Does nothing if this agent has it. kRefused: another agent has it; kIo: the directory cannot be
  // used.
  [[nodiscard]] Status take(const std::string& uuid);
  // For an agent that was started again: has the claims that its processes have.
  void join(const std::set<std::string>& uuids);
  // Gives back all other claims.
  void keep_only(const std::set<std::string>& uuids);

  // Whether another agent has it.
  [[nodiscard]] bool is_taken_elsewhere(const std::string& uuid) const;
  [[nodiscard]] std::string path_of(const std::string& uuid) const;

 private:
  std::string directory_;
  std::map<std::string, ClaimFile> own_;  // by UUID
};

}  // namespace antdt::antdtd
