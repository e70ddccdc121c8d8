// Records that operators let the job go on without: declared in each lineage anew, and kept beside
// the run for those that follow.
#pragma once

#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/operator_messages.h"
#include "jobd/outbox.h"
#include "launcher/start/skips.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::jobd {

struct Shell;

// Which of them the present lineage does not know yet: the run was resumed, or went back to a
// checkpoint from before. Pure.
class SkipList {
 public:
  explicit SkipList(std::vector<launcher::Skip> skips = {}) : skips_(std::move(skips)) {}

  void add(launcher::Skip skip) { skips_.push_back(std::move(skip)); }
  // To be declared now that this phase is open, each once in a lineage.
  [[nodiscard]] std::vector<wire::SkipRecords> take_due(const shard_server::Phase& open,
                                                        Lineage lineage);
  // Whether they are others than when this was asked last.
  [[nodiscard]] bool take_changed() { return std::exchange(changed_, false); }
  [[nodiscard]] const std::vector<launcher::Skip>& all() const { return skips_; }

 private:
  std::vector<launcher::Skip> skips_;
  bool changed_ = false;
};

class SkipDesk {
 public:
  explicit SkipDesk(Shell& shell) : shell_(shell) {}

  [[nodiscard]] Status read();
  // An operator wants them skipped in this epoch.
  void add(Epoch epoch, const wire::SkipRecords& order);
  void declare();
  // Who asked is answered when they are kept: the newest message is held back until then.
  void answer_when_kept() { answers_.push_back(take_answer()); }
  // After the declarations are durable: declared and not kept is declared again, which does no
  // harm; kept and not declared would be lost, and an incarnation that was succeeded must not write
  // here.
  void keep();

 private:
  [[nodiscard]] Outgoing take_answer();

  Shell& shell_;
  SkipList skips_;
  std::vector<Outgoing> answers_;
};

}  // namespace antdt::jobd
