// A worker as a member of its job: from join to bye.
//
//   joining --Form--> forming --Roster--> connecting, healing --Ready, Settle-->
//   settled --PhaseStart--> in a phase --its end--> settled
//   any but joining --the generation ends--> joining   (says so with a Join)
//   any --Form--> forming                              (of a new generation)
//   any --Leave, SIGTERM--> ended   (after PhaseStart "finish": Leave once the model is kept)
//
// A generation ends here with Abort, with a Regroup (in a phase at the end of a
// step, by agreement), with a collective that breaks, or when it cannot be formed.
// Process and training state stay. The member waits for the next Form as long as
// its agent keeps it: whether there is one is for the job daemon to decide.
//
// A Form says whose training state goes on (`base`). In it this member holds
// either that state or nothing; who lacks it receives it before Ready
// (healing.h). A checkpoint is read by the one member that the Form names; the
// others receive what it read. Orders of other generations than the one formed change nothing.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/result.h"
#include "trainer/loop/checkpoint_writer.h"
#include "trainer/loop/training_state.h"

namespace antdt::trainer {

class Member {
 public:
  struct Parts {
    data::RecordReader* train = nullptr;
    data::RecordReader* eval = nullptr;
    wire::DataIdentity data;
    CollectiveFactory make_collective;
    std::uint32_t eval_batch = 256;  // records
    wire::Device device = {};
    // What is written and does not move for so long is given up.
    Duration io_patience = std::chrono::seconds(120);
  };
  Member(Tools tools, Parts parts);

  // Until the job or this member's part of it ends; answers the exit code, and
  // bye has been said. An error is why this member gives up; the caller says so.
  // kAborted (exit code 76): it cannot take part in the training as it goes on.
  [[nodiscard]] Result<int> run();

 private:
  [[nodiscard]] Result<int> live();
  // Each answers an exit code when the member's life ends with it.
  using Verdict = Result<std::optional<int>>;
  // "I am ready for a new generation", or why the last one could not be formed here.
  void join(std::string problem, std::string unreadable = {});
  [[nodiscard]] Verdict turn();
  [[nodiscard]] Verdict obey(const client::Directive& directive);
  [[nodiscard]] Verdict on(const wire::Form& form);
  [[nodiscard]] Verdict on(const wire::Roster& roster);
  [[nodiscard]] Verdict on(const wire::Settle& settle);
  [[nodiscard]] Verdict on(const wire::PhaseStart& start);
  [[nodiscard]] Verdict on(const wire::Abort& abort);
  [[nodiscard]] Verdict on(const wire::Regroup& regroup);
  [[nodiscard]] Verdict on(const wire::Leave& leave);
  // Not said to the members of a collective.
  [[nodiscard]] Verdict on(const wire::PsRoster&) { return std::nullopt; }
  // Whether this member holds the state that is to go on; it may have to load it.
  [[nodiscard]] Result<bool> holds_state();
  void forget_state();
  [[nodiscard]] Status restore();
  void cannot_read(const Error& error);
  void settled(Generation generation, const std::vector<WorkerId>& members);
  [[nodiscard]] Result<PhaseEnd> run_phase(const wire::PhaseStart& start);
  [[nodiscard]] Result<PhaseEnd> evaluate();
  void finish(const wire::PhaseStart& start);
  void write_final_model();
  void say_final_model();
  [[nodiscard]] int leave_code() const;
  [[nodiscard]] Result<GroupKey> group_key() const;
  [[nodiscard]] bool in_generation() const { return builder_ || collective_; }
  // The generation is over here: lets go of it and joins again.
  void dissolve(const std::string& reason, std::string problem = {}, std::string unreadable = {});
  void formation_failed(const std::string& why);

  Tools tools_;
  Parts parts_;
  // This member is to write the model; until the job daemon has it. `written` comes from the
  // writer's thread.
  struct FinalModel {
    std::uint64_t number = 0;
    std::uint64_t phase = 0;
    bool begun = false;
    std::optional<MonoTime> said;
  };
  std::optional<FinalModel> final_model_;
  std::mutex final_mutex_;
  std::optional<wire::CheckpointWritten> final_written_;
  TrainingState state_;
  Generation generation_;  // the newest that was formed with this member
  wire::Form form_;        // of it
  std::shared_ptr<CollectiveBuilder> builder_;
  std::shared_ptr<Collective> collective_;
  // The last generation that this member was ready for, and its members. If it
  // settled this member holds its state, though the Settle may never have come.
  Generation ready_;
  std::vector<WorkerId> ready_members_;
  CheckpointWriter writer_;  // the last: its thread uses what is above
};

}  // namespace antdt::trainer
