// Parameter servers and the workers that push to them: connects their ServerGroup with the rest of
// the job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ctl/job/group/group.h"
#include "ctl/job/group/server_cuts.h"
#include "ctl/job/work.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl::job {

struct Parts;

class ServersGroup final : public Group {
 public:
  explicit ServersGroup(Parts& parts) : parts_(parts), cuts_(parts) {}

  [[nodiscard]] Generation generation() const override;
  [[nodiscard]] bool whole() const override;
  [[nodiscard]] bool closing() const override;
  [[nodiscard]] std::vector<Member> members() const override;
  [[nodiscard]] std::optional<std::vector<Member>> restored() override;
  void recover(Work& /*work*/) override {}
  void finish_recovery(Work& work) override;
  void expect(Work& work) override;
  [[nodiscard]] bool takes(const wire::Join& /*join*/) const override { return true; }
  void join(Member member, Generation generation, const wire::Join& join, Work& work) override;
  void release(const lifecycle::ReleaseWorker& gone, Work& work) override;
  void tick(Work& work) override;
  void stepped(Work& work) override;
  void stuck(const std::string& why, Work& work) override;
  [[nodiscard]] bool awaits(Member member) const override;
  void state_moves(Work& work) override;
  void records_skipped(Work& /*work*/) override {}  // workers of servers do not count records
  void order_checkpoint(const lifecycle::OrderCheckpoint& order, Work& work) override;
  [[nodiscard]] bool may_write_checkpoint(Generation /*generation*/) const override {
    return false;  // the servers write checkpoints together
  }
  void set_rate(double rate, Work& work) override;
  void say_finish_again(Work& work) override;
  [[nodiscard]] Result<Beginning> beginning(const CheckpointFound& found) const override;
  void begin(const std::string& checkpoint, std::uint64_t version, Work& work) override;

  // Carries out what ServerGroup wants done.
  void carry_out(const servers::Effect& effect, Work& work);
  // The controller has a plan for these workers.
  void on(const ServerWorkersPlanned& e, Work& work);
  void on(const ServerWorkerPlanned& e, Work& work);

  [[nodiscard]] ServerCuts& cuts() { return cuts_; }
  [[nodiscard]] const ServerCuts& cuts() const { return cuts_; }

 private:
  void on(const servers::OpenGroup& formed, Work& work);
  void on(const servers::AdmitWorker& admitted, Work& work);
  void on(const servers::SettleLeaver& left, Work& work);
  void on(const servers::DissolveGroup& over, Work& work);
  void on(const servers::ReportSwitch& switched, Work& work);
  void on(const servers::ReportBackup& backed, Work& work);
  void on(const servers::ReportTrouble& trouble, Work& work);
  // Makes a new plan if the workers that push have changed.
  void deal_again(Work& work);
  void tell_of_servers(Member worker, Work& work) const;
  [[nodiscard]] wire::PsRoster roster() const;
  [[nodiscard]] std::vector<shard_server::OldPlace> places_in_doubt() const;

  Parts& parts_;
  ServerCuts cuts_;
  bool was_closing_ = false;
  std::vector<Member> dealt_;            // workers that have a share in the plan
  std::map<Member, wire::PsSaid> said_;  // what workers reported whose group is over
};

}  // namespace antdt::ctl::job
