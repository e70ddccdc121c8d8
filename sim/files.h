// The run's files, which all hosts see: complete and incomplete checkpoints, and whether there is
// room for more.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/ids.h"
#include "ctl/job/job_events.h"
#include "ctl/lifecycle/state/job_spec.h"
#include "sim/model.h"
#include "sim/servers/ps_packets.h"

namespace antdt::sim {

struct SharedFiles {
  struct Checkpoint {
    Trained state;
    PsSlices slices;  // if the model is on servers
    Lineage lineage;
    std::string ledger_image, accounts_image;
    bool damaged = false;  // and the checksums show the damage
  };
  std::map<std::string, Trained> written;         // incomplete checkpoints by directory
  std::map<std::string, PsSlices> slices;         // the same for servers
  std::map<std::string, Checkpoint> checkpoints;  // by name
  bool full = false;                              // nothing more can be written
  bool away = false;                              // workers and servers cannot read checkpoints
  std::uint64_t records = 0;                      // of the training data at its largest
  bool unread = false;                            // sabotage: servers do not read their slices

  // ---- for the processes of the job. write() returns the error, or "".
  [[nodiscard]] std::string write(const std::string& directory, const Trained& state);
  [[nodiscard]] std::string write(const std::string& directory, const PsSlices& own);
  // Returns null if it cannot be read.
  [[nodiscard]] const Trained* read(const std::string& name) const;
  [[nodiscard]] const PsSlices* read_slices(const std::string& name) const;
  // The model with which training goes on from this checkpoint; null: training begins at the start.
  [[nodiscard]] const Model* model_in(const std::string& name) const;

  // ---- for the job daemon
  // Makes a checkpoint of what was written; `stored` sees it before older ones are removed. What
  // cannot be stored is removed.
  [[nodiscard]] ctl::job::CheckpointStored store(
      const ctl::job::StoreCheckpoint& order, const ctl::JobSpec& spec,
      const std::function<void(const Checkpoint&)>& stored);
  // What was written of failed checkpoints up to this age.
  void remove_unfinished(ctl::copies::Age up_to);
  // The newest complete checkpoint.
  [[nodiscard]] ctl::job::CheckpointFound newest() const;

 private:
  [[nodiscard]] bool take_slices(const ctl::job::StoreCheckpoint& order);
  [[nodiscard]] std::string keep(const ctl::job::StoreCheckpoint& order, const std::string& name,
                                 const ctl::JobSpec& spec,
                                 const std::function<void(const Checkpoint&)>& stored);
};

}  // namespace antdt::sim
