// The invariants of a simulated job, checked after every event that could break one.
//
//   one hand          at most one worker holds a record: none takes what another
//                     member of the same generation took, and the ledger's granted,
//                     returned and untouched records do not overlap
//   pinned            a worker is given no record that is pinned to another domain
//   monotone          a committed record stays committed within a lineage
//   exactly once      a record enters a model once an epoch
//   equal replicas    members that consolidate their replicas together have the same one
//   entire            where domains send one another parts of updates: a replica that was made
//                     equal to others, and a checkpoint, has nothing in part
//   one threshold     members that exchange updates in a step do so with the same threshold
//   model and ledger  when a generation settles, the model of its members is
//                     what the ledger says is committed; later every living
//                     holder of that state contains what is committed
//   saved             a checkpoint's model is what its ledger says is committed
//   rows as the replica
//                     where embedding rows are on servers: the rows that a member is
//                     sent, and those of a checkpoint, contain the steps that the
//                     replica contains, and it is never refused for what it says
//   patience          no process is ended as hung while it reads or writes without a
//                     pause and reports that
//   end               no member hears "end" before all records are committed
//   skipped           a skipped record is not handed out again, and no other is missing
//   end of training   once its program has ended the training no member makes a step, what is
//                     left of the epoch is skipped, and no other epoch begins
//   program skips     the accounts have exactly the records that the program skipped in the
//                     steps of a model: when a generation settles, in a checkpoint and at
//                     the end
//   grown             an epoch that is opened again has the records that it had before
//   asked             a job stops only if an operator asked it to
//   accounts          at the end every record was trained once in each epoch, or
//                     skipped
//   promise           for servers that promise less than exactly once: if some rows of a
//                     checkpoint have a record too often or too seldom, its accounts say
//                     so, and the promise allows it
//   change            a change of the number of servers waits for nothing once the new
//                     servers are there, the group serves, and nothing fails any more
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/job/job_machine.h"
#include "ctl/job/skip_list.h"
#include "sim/files.h"
#include "sim/job_shape.h"
#include "sim/members/worker.h"
#include "sim/servers/ps_checks.h"
#include "sim/world.h"

namespace antdt::sim {

class Checks {
 public:
  Checks(World& world, std::uint64_t seed, const JobShape& shape);
  // Training on this host is a violation, because its data differs from the data that the accounts
  // count. Empty: no such host.
  void no_training_on(std::string host) { other_host_ = std::move(host); }

  void took(const Worker& worker, Record record);
  void trained(const Worker& worker, Record record);
  void phase_done(const Worker& worker);
  // The member has made its replica equal to those of others.
  void consolidated(const Worker& worker);
  // For parameter servers and their workers.
  void group_began(Generation generation, const Model* from) {
    servers_.group_began(generation, from);
  }
  void pushed(const PsWorker& worker, std::uint64_t number, const std::vector<Record>& records,
              std::optional<float> exchange) {
    check_data(worker);
    for (const Record record : records) check_pin(worker, record);
    servers_.pushed(worker, number, records, exchange);
  }
  void decided(Generation generation, std::uint32_t home, const wire::PsDecision& decision);
  void stepped(Generation generation, const Program& who, const ps::ServerNode& node,
               MeanChecks::Seen& seen) {
    servers_.stepped(generation, who, node, seen);
  }
  void phase_done(const PsWorker& worker);
  void refused(const PsWorker& worker, const std::string& why) { servers_.refused(worker, why); }
  void skipped(const ctl::JobMachine& machine, const ctl::job::Skip& skip, bool durable);
  void said_end(const ctl::JobMachine& machine, std::uint64_t phase);
  void stored(const SharedFiles::Checkpoint& checkpoint);
  void killed(const ctl::JobMachine& machine, const Worker& worker);
  // A process ended because it was refused. `machine` is that of the job daemon, null if none runs.
  void gave_up(const ctl::JobMachine* machine, const Program& program);
  void durable(const ctl::JobMachine& machine, const std::vector<std::shared_ptr<Worker>>& living,
               const SharedFiles& files);
  void ended(const ctl::JobMachine& machine, const SharedFiles& files, const ctl::Outcome& outcome);
  void faults_are_over() { faults_are_over_ = true; }

 private:
  // How often each record is in a model that contains what is committed. A record that is skipped
  // in some epoch has two counts: with that epoch and without it.
  struct Tally {
    std::vector<std::uint8_t> least, most;
  };
  [[nodiscard]] Tally committed(const shard_server::Ledger& ledger);
  // The tally after this many whole epochs.
  [[nodiscard]] Tally full(std::uint32_t epochs) const;
  [[nodiscard]] std::uint8_t skips_before(std::uint32_t epoch, Record record) const;
  [[nodiscard]] std::uint64_t records_of(std::uint32_t epoch) const;
  // How many of the first `epochs` epochs have this record.
  [[nodiscard]] unsigned epochs_with(Record record, std::uint32_t epochs) const;
  const std::vector<Record>& order_of(Epoch epoch);
  void check_data(const Program& who);
  void check_entire(const std::string& who, const Model& model);
  void check_both_parts(const SharedFiles::Checkpoint& checkpoint);
  void check_pin(const Program& who, Record record);
  void check_hands(const shard_server::Ledger& ledger);
  void check_monotone(const ctl::JobMachine& machine);
  // The whole epoch in which the training ends may be left out, unless training goes back before.
  void see_cut(const ctl::JobMachine& machine);
  void check_models(const ctl::JobMachine& machine,
                    const std::vector<std::shared_ptr<Worker>>& living, const SharedFiles& files);
  void check_servers(const ctl::JobMachine& machine);
  void check_change(const ctl::JobMachine& machine);
  [[nodiscard]] bool exact() const { return shape_.delivery == Delivery::kExactlyOnce; }
  void check_promise(const SharedFiles::Checkpoint& checkpoint, const Tally& tally);
  void check_accounts(const ctl::JobMachine& machine);
  void check_program_skips(const std::string& who, const Model& model,
                           const shard_server::Accounts& accounts);
  // How many epochs something is trained of.
  [[nodiscard]] std::uint32_t epochs_of(const ctl::JobMachine& machine) const;
  void contains(const std::string& who, const Model& model, const Tally& tally, bool exactly,
                const char* invariant);

  World& world_;
  const shard_server::LedgerConfig ledger_;
  const JobShape shape_;
  PsChecks servers_;
  std::string other_host_;
  std::map<std::pair<Epoch, std::uint64_t>, std::vector<Record>> orders_;  // by number of records
  std::map<std::uint32_t, std::uint64_t> sizes_;  // records of the epochs so far
  std::map<std::pair<Generation, std::uint64_t>, std::map<Record, Member>> taken_;
  // By the generation in which replicas were made equal, and the step: the hash of the first of
  // them.
  std::map<std::pair<Generation, Step>, std::uint64_t> consolidated_;
  Lineage lineage_;
  std::uint64_t phase_ = 0;
  shard_server::IntervalSet committed_;
  Generation settled_;
  bool faults_are_over_ = false;
  Duration looked_{};  // when these checks last looked at the change
  Duration idle_{};    // for how long a change of the servers has waited for nothing
  // By epoch and record: the newest generation at the time when the record's commit became durable.
  std::map<std::uint32_t, std::map<Record, std::optional<Generation>>> skips_;
  std::map<std::uint32_t, shard_server::IntervalSet> skipped_;  // positions, by epoch
  // What skips_ and skipped_ had of the epoch before it was cut.
  struct Cut {
    std::uint32_t epoch = 0;
    std::map<Record, std::optional<Generation>> skips;
    shard_server::IntervalSet skipped;
  };
  std::optional<Cut> cut_;
};

}  // namespace antdt::sim
