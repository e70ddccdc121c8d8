// Checkpoints as they come from whoever writes them: what the ledger and the accounts were at their
// step is put beside them, and they are given to be stored.
//
//   ──CheckpointBegun──> begun ──CheckpointWritten──> StoreCheckpoint ──CheckpointStored──> the
//                          │                                             lifecycle hears how it
//                          ended └── another one begins, its writer ends or is silent about it: it
//                          failed
//
// A member that does not say when it begins says CheckpointWritten alone. Nothing here is durable:
// a restart of the job daemon forgets what was begun.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "ctl/job/job_events.h"

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
  // What was begun is of another lineage.
  void went_back(Work& work);
  // That it is written, or not, may be lost on its way: with each tick.
  void look_at_begun(Work& work);

  // Of this step and phase; `writers` of each file.
  void store(const wire::CheckpointWritten& written, Member writer,
             const std::vector<Member>& writers, Work& work);

 private:
  struct Begun {
    wire::CheckpointBegun said;
    StoreCheckpoint store;  // all but `written`
    std::string error;      // why it can be no checkpoint; empty: it can
    MonoTime seen{};        // when its writer was heard of last, writing
  };
  [[nodiscard]] bool is_begun(Member writer, const wire::CheckpointWritten& e) const;
  void begun_failed(const std::string& why, Work& work);
  void conclude(std::uint64_t number, const std::string& error, Work& work);  // empty: stored
  [[nodiscard]] Status keep_aside(const std::vector<wire::MemberPlace>& places,
                                  StoreCheckpoint& store) const;
  [[nodiscard]] std::vector<copies::Part> parts_of(const wire::CheckpointWritten& written,
                                                   const std::vector<Member>& writers) const;

  Parts& parts_;
  std::optional<Begun> begun_;
};

}  // namespace antdt::ctl::job
