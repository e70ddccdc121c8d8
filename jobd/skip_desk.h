// Records that operators let the job go on without. They are declared again in each lineage, and
// kept in the run directory for later lineages.
#pragma once

#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/operator_messages.h"
#include "ctl/job/skip_list.h"
#include "jobd/outbox.h"

namespace antdt::jobd {

struct Shell;

class SkipDesk {
 public:
  explicit SkipDesk(Shell& shell) : shell_(shell) {}

  // Reads skips.json, and what the journal knows beyond it.
  [[nodiscard]] Status read(const shard_server::JournalContent& journal);
  // An operator wants these records skipped in this epoch.
  void add(Epoch epoch, const wire::SkipRecords& order) { skips_.add(epoch, order); }
  void declare();
  // The journal's record of the skips that were declared in this turn; empty if there are none.
  [[nodiscard]] std::string record_if_changed() const { return skips_.record_if_changed(); }
  // The section of a snapshot; none if there are no skips.
  void add_section(std::vector<shard_server::JournalEntry>& sections) const;
  // Holds the newest message (the answer) back until the skips are kept.
  void answer_when_kept();
  // Writes the skips, after their declarations are durable. If a skip is declared but not kept, it
  // is declared again, which does no harm. The other order could lose a skip, and would let an
  // incarnation that has been succeeded write here.
  void keep();

 private:
  Shell& shell_;
  ctl::job::SkipList skips_;
  std::vector<Outgoing> answers_;
};

}  // namespace antdt::jobd
