// How a member of a collective reaches the servers that hold its model's embedding rows
// (docs/synchronisation/hybrid.md). Nothing is decided here.
#pragma once

#include <memory>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/served/hosted_rows.h"

namespace antdt::trainer {

// On the training thread. What waits ends with kAborted when the generation of the members is over.
class StepRows {
 public:
  // Of one generation of members; abort() may be called from any thread.
  class Link {
   public:
    virtual ~Link() = default;
    virtual void abort() = 0;
  };
  virtual ~StepRows() = default;

  // For the generation that has settled: its servers, of that generation of their own. Does not
  // wait. After an error each of the calls below that would reach a server fails with it.
  [[nodiscard]] virtual Result<std::shared_ptr<Link>> use(Generation group,
                                                          const wire::PsRoster& servers) = 0;
  virtual void leave() = 0;
  // The engine gets the rows of this batch, as they are after the step that was concluded.
  [[nodiscard]] virtual Status pull(HostedRows& rows, const data::Examples& batch,
                                    wire::PsConcluded concluded) = 0;
  // The gradients of a micro-batch are added to this member's part of the step.
  virtual void add(std::vector<ps::TableGradient> gradients) = 0;
  virtual void drop() = 0;
  // Sends every server this member's part of the step behind the one that was concluded.
  [[nodiscard]] virtual Status send(HostedRows& rows, wire::PsConcluded concluded,
                                    std::uint32_t rank) = 0;
  // Waits until every server has the part that was sent.
  [[nodiscard]] virtual Status await_staged() = 0;
  // Tells every server what was concluded, and no more.
  [[nodiscard]] virtual Status conclude(HostedRows& rows, wire::PsConcluded concluded) = 0;
  // Where servers put their slices of the checkpoint of that number, below the run's directory.
  [[nodiscard]] virtual std::string directory_of(std::uint64_t cut) const = 0;
};

}  // namespace antdt::trainer
