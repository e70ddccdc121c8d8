// The members of a collective: connects their Membership with the rest of the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/job/group/group.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {

struct Parts;

class RingGroup final : public Group {
 public:
  explicit RingGroup(Parts& parts) : parts_(parts) {}

  [[nodiscard]] Generation generation() const override;
  [[nodiscard]] bool whole() const override;
  [[nodiscard]] std::vector<Member> members() const override;
  [[nodiscard]] std::optional<std::vector<Member>> restored() override;
  void recover(Work& work) override;
  void finish_recovery(Work& work) override;
  void expect(Work& work) override;
  [[nodiscard]] bool takes(const wire::Join& join) const override;
  void join(Member member, Generation generation, const wire::Join& join, Work& work) override;
  void release(const lifecycle::ReleaseWorker& gone, Work& work) override;
  void tick(Work& work) override;
  void stepped(Work& work) override;
  void stuck(const std::string& why, Work& work) override;
  [[nodiscard]] bool awaits(Member member) const override;
  void state_moves(Work& work) override;
  void records_skipped(Work& work) override;
  void order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) override;
  [[nodiscard]] bool may_write_checkpoint(Generation generation) const override;
  void model_failed() override;
  void set_rate(double /*rate*/, Work& /*work*/) override {
  }  // each member's plan contains the rate
  void say_finish_again(Work& work) override;
  [[nodiscard]] Result<Beginning> beginning(const CheckpointFound& found) const override;
  void begin(const std::string& /*checkpoint*/, std::uint64_t /*version*/, Work&) override {}
  [[nodiscard]] bool tries_again(const CheckpointFound& found, Work& work) override;

  // Carries out what Membership wants done.
  void carry_out(const membership::Effect& effect, Work& work);
  // The generation has a plan, or no plan is possible.
  void on(const SettlePlanned& e, Work& work);

  // What tells a member that its generation has settled, at this step.
  [[nodiscard]] wire::Settle settle_of(Member member, Step step) const;
  // Adds which rank writes the model and how many could not; only at the job's end.
  void name_writer(wire::PhaseStart& finish) const;

 private:
  void on(const membership::SettleGeneration& settled, Work& work);
  void on(const membership::EndUnresponsive& silent, Work& work);
  void on(const membership::FormationStands& e, Work& work);

  Parts& parts_;
  bool settled_ = false;                // the lifecycle knows a generation that is in force
  std::optional<Member> model_writer_;  // empty: rank 0 writes it
  std::uint64_t model_tries_ = 0;       // how often it could not be written, or stored
};

// The state with which a group begins if no member holds any: that of the checkpoint.
[[nodiscard]] Beginning from_checkpoint(const Parts& parts, const CheckpointFound& found);

}  // namespace antdt::ctl::job
