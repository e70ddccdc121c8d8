// The members of a collective whose embedding rows are on parameter servers (sync = "hybrid";
// docs/synchronisation/hybrid.md): connects Membership and ServerGroup with each other and with the
// rest of the job.
//
//   a worker joins ──> ServerGroup ──(every server knows it)──> Membership
//   the servers are given up ──> Membership: its state is lost ─┐
//   no member holds the state ──> ServerGroup: its rows are void ┴──> both begin from one
//   checkpoint
//
// Steps are the members' business (ring_group.h). Nothing here is durable but the two machines: if
// they disagree after a restart, what one of them lost is lost for the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctl/job/group/ring_group.h"

namespace antdt::ctl::job {

class HybridGroup final : public Group {
 public:
  HybridGroup(Parts& parts, RingGroup& ring) : parts_(parts), ring_(ring) {}

  [[nodiscard]] Generation generation() const override { return ring_.generation(); }
  [[nodiscard]] bool whole() const override;
  [[nodiscard]] std::vector<Member> members() const override { return ring_.members(); }
  [[nodiscard]] std::optional<std::vector<Member>> restored() override;
  void recover(Work& work) override;
  void finish_recovery(Work& work) override { ring_.finish_recovery(work); }
  void expect(Work& work) override;
  [[nodiscard]] bool takes(const wire::Join& /*join*/) const override { return true; }
  void join(Member member, Generation generation, const wire::Join& join, Work& work) override;
  void release(const lifecycle::ReleaseWorker& gone, Work& work) override;
  void tick(Work& work) override;
  void stepped(Work& work) override { ring_.stepped(work); }
  void stuck(const std::string& why, Work& work) override { ring_.stuck(why, work); }
  [[nodiscard]] bool awaits(Member member) const override;
  void state_moves(Work& work) override;
  void records_skipped(Work& work) override { ring_.records_skipped(work); }
  void order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) override;
  [[nodiscard]] bool may_write_checkpoint(Generation generation) const override {
    return ring_.may_write_checkpoint(generation);
  }
  void model_failed() override { ring_.model_failed(); }
  void set_rate(double /*rate*/, Work& /*work*/) override {}  // members say it with each step
  void say_finish_again(Work& work) override;
  [[nodiscard]] Result<Beginning> beginning(const CheckpointFound& found) const override {
    return ring_.beginning(found);
  }
  void begin(const std::string& checkpoint, std::uint64_t version, Work& work) override;
  [[nodiscard]] bool tries_again(const CheckpointFound& found, Work& work) override;

  // Carries out what the two machines want done.
  void carry_out(const membership::Effect& effect, Work& work);
  void carry_out(const servers::Effect& effect, Work& work);

 private:
  struct Joined {
    Generation generation;
    wire::Join join;
    bool let_in = false;  // the servers know it, and what was its problem is told
  };
  void let_join(Member worker, Work& work);

  Parts& parts_;
  RingGroup& ring_;
  std::map<Member, Joined> joined_;  // what workers said last
};

}  // namespace antdt::ctl::job
