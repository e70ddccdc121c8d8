// The shard service as the job daemon runs it: the ledger, the audit's
// accounts and the journal that makes both durable, behind one object.
//
// Nothing here is durable before commit(); the caller sends the replies it was
// given only after that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/antdt-jobd/report.h"
#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/wire/messages.h"
#include "ctl/lifecycle.h"
#include "launcher/job_config.h"
#include "shard_server/accounts.h"
#include "shard_server/journal.h"
#include "shard_server/ledger.h"

namespace antdt::jobd {

// What the ledger's effects ask of the daemon.
struct ShardOutput {
  struct Reply {
    Member member;
    Generation generation;
    std::uint64_t seq = 0;
    wire::Grants grants;
  };
  struct Refusal {
    Member member;
    std::uint64_t seq = 0;
    wire::Refused refused;
  };
  struct Recall {
    Member member;
    Generation generation;
    std::uint64_t number = 0;
    wire::Recall recall;
  };
  std::vector<Reply> replies;
  std::vector<Refusal> refusals;
  std::vector<Recall> recalls;
  std::vector<std::string> notes;
  std::optional<std::uint64_t> drained_phase;
  std::optional<std::string> stop_reason;
};

class Shards {
 public:
  // Opens STATE_DIR/state.db and replays it.
  [[nodiscard]] static Result<Shards> open(const std::string& state_dir,
                                           shard_server::DataSet train, shard_server::DataSet eval);

  [[nodiscard]] Incarnation incarnation() const { return journal_.incarnation(); }
  // The newest image that an earlier incarnation journaled; empty: none.
  [[nodiscard]] const std::string& recovered_image() const { return image_; }
  void journal_image(std::string bytes);

  // One event of the ledger; `output` is added to.
  void step(const shard_server::Event& event, MonoTime now, ShardOutput& output);
  [[nodiscard]] ShardOutput step(const shard_server::Event& event, MonoTime now);

  // Makes everything since the last commit durable.
  [[nodiscard]] Status commit();

  [[nodiscard]] const shard_server::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] Totals totals() const;
  // ledger.json of a checkpoint: where the data stands when these places are
  // committed.
  [[nodiscard]] Result<std::string> checkpoint_json(
      const std::vector<wire::MemberPlace>& places) const;

 private:
  Shards(shard_server::Ledger ledger, shard_server::Accounts accounts,
         shard_server::Journal journal, std::string image);

  shard_server::Ledger ledger_;
  shard_server::Accounts accounts_;
  shard_server::Journal journal_;
  std::string image_;
  shard_server::Effects effects_;  // kept for its capacity
};

}  // namespace antdt::jobd
