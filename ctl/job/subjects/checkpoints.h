// Checkpoints, from their writer to their storage: the ledger and the accounts as of the
// checkpoint's step are added, and the checkpoint is passed on to be stored.
//
//   ──CheckpointBegun──> begun ──CheckpointWritten──> StoreCheckpoint ──CheckpointStored──>
//                          │                                    the lifecycle hears the result
//                          └── another one begins, or its writer ends or stops reporting it ──>
//                          failed
//
// Where rows are on servers (sync = "hybrid"), a checkpoint has two parts, of rank 0 and of the
// servers. It is stored when both are here and of the same step.
//
// A member that does not report when it begins sends CheckpointWritten alone. Nothing here is
// durable: a restart of the job daemon forgets what was begun.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/job/job_events.h"
#include "ctl/servers/group_events.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Checkpoints {
 public:
  explicit Checkpoints(Parts& parts) : parts_(parts) {}

  void begun(Member writer, Generation generation, const wire::CheckpointBegun& e, Work& work);
  void written(Member writer, Generation generation, const wire::CheckpointWritten& e, Work& work);
  void on(const CheckpointStored& e, Work& work);

  void writer_ended(Member writer, Work& work);
  // Training went back, so what was begun belongs to another lineage.
  void went_back(Work& work);
  // Where rows are on servers: these have written theirs, or could not.
  void slices(const servers::ConcludeCut& cut, Work& work);
  // With each tick: the report that a checkpoint was written, or failed, may have been lost.
  void look_at_begun(Work& work);

  // The checkpoint of this step and phase; `writers` of each file.
  void store(const wire::CheckpointWritten& written, Member writer,
             const std::vector<Member>& writers, Work& work);

 private:
  struct Begun {
    wire::CheckpointBegun said;
    Generation generation;  // in which its writer began it
    StoreCheckpoint store;  // complete but for `written`
    std::string error;      // why it cannot become a checkpoint; empty: it can
    MonoTime seen{};        // when its writer last reported that it is writing
  };
  [[nodiscard]] bool is_of_now(Generation generation, std::uint64_t phase) const;
  // Handed over with StoreCheckpoint, and not answered yet.
  struct Storing {
    Member writer;
    Generation generation;
    std::uint64_t number = 0;
    std::string directory;
  };
  [[nodiscard]] bool is_begun(Member writer, const wire::CheckpointWritten& e) const;
  [[nodiscard]] bool is_being_stored(Member writer, Generation generation,
                                     const wire::CheckpointWritten& e) const;
  void begun_failed(const std::string& why, Work& work);
  // The part of the members is complete. Where rows are on servers, theirs is awaited.
  void order(StoreCheckpoint store, Work& work);
  void order_whole(StoreCheckpoint store, Work& work);
  // Stores the two parts of a checkpoint, if both are there.
  void join_parts(Work& work);
  void conclude(std::uint64_t number, const std::string& error,
                Work& work);  // empty: it was stored
  // Tells the lifecycle, and nobody else.
  void tell(std::uint64_t number, const std::string& error, Work& work) const;
  // It failed, and so did all that are older and were not stored, but for those that still may be.
  void remove_left(std::uint64_t number, Generation generation, Step step, Work& work);
  // All that is younger may still become a checkpoint.
  [[nodiscard]] copies::Age newest_over() const;
  [[nodiscard]] Status keep_aside(const std::vector<wire::MemberPlace>& places,
                                  StoreCheckpoint& store) const;
  [[nodiscard]] std::vector<copies::Part> parts_of(const wire::CheckpointWritten& written,
                                                   const std::vector<Member>& writers) const;

  Parts& parts_;
  std::optional<Begun> begun_;
  std::vector<Storing> storing_;
  copies::Age given_up_;  // of the newest whose remains were to go
  // Where rows are on servers: the newest part of each side that waits for the other.
  std::optional<StoreCheckpoint> dense_;
  std::optional<servers::ConcludeCut> slices_;
};

}  // namespace antdt::ctl::job
