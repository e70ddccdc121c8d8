// Checkpoints of parameter servers: what follows for the job when all servers have written their
// part of a cut, and when one of them cannot.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "ctl/processes/worker_process.h"
#include "ctl/servers/server_group.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class ServerCuts {
 public:
  explicit ServerCuts(Parts& parts) : parts_(parts) {}

  // A cut is ordered; it belongs to the ledger's present phase.
  void ordered(std::uint64_t phase) { phase_ = phase; }
  void on(const servers::ConcludeCut& cut, Work& work);
  // The process that serves as the first of the servers; null if none does.
  [[nodiscard]] const WorkerProcess* first_server() const;

  // Durable.
  [[nodiscard]] std::uint64_t phase() const { return phase_; }

 private:
  // Moves a server whose part could not be written. The disk of its host may be full for good, but
  // its rows are in memory, and another host's disk may have room for them.
  void move_who_cannot_write(const servers::ConcludeCut& cut, Work& work);

  // Checkpoints that failed because of the same server.
  struct Unwritten {
    Member server;
    std::uint32_t times = 0;  // how many in a row
    std::string said = {};    // the reported reason why it cannot be moved
  };

  Parts& parts_;
  std::uint64_t phase_ = 0;
  Unwritten unwritten_;
};

}  // namespace antdt::ctl::job
