// What the run's history is told (shard_server/history/history.h): an observer of the job. It is
// shown what happens, and says what is to be remembered of it: who was granted which part of the
// stream, how many records of each member every step took, and what workers measured, second by
// second. Steps are those of collectives alone: a loose client has none, and its path pays nothing
// for this.
//
// Nothing of it is durable: what a power failure took is told again (resume).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "core/wire/worker_messages.h"
#include "ctl/job/observers/step_watch.h"
#include "ctl/membership/membership.h"
#include "ctl/monitor/view.h"
#include "shard_server/history/history.h"
#include "shard_server/ledger/ledger.h"

namespace antdt::ctl {

class RunHistory {
 public:
  using Entries = std::vector<shard_server::history::Entry>;
  // `external`: clients come by themselves, and none of them has steps.
  explicit RunHistory(bool external) : external_(external) {}

  // What a member of the settled collective has in its hand; nothing for others.
  struct Hand {
    std::uint64_t phase = 0;
    std::uint64_t end = 0;
  };
  [[nodiscard]] std::optional<Hand> hand(const shard_server::Ledger& ledger,
                                         const Membership& membership, Member m,
                                         Generation g) const;
  [[nodiscard]] static Entries changed(const shard_server::Ledger& ledger, Member m,
                                       const Hand& before);

  struct Steps {
    Entries entries;
    std::string refused;  // why they cannot be; empty: they can, or that was said before
  };
  [[nodiscard]] Steps hear(const wire::StepHistory& told, Step step);
  [[nodiscard]] shard_server::history::Entry settled(const membership::SettleGeneration& settled,
                                                     Lineage lineage);
  // A power failure takes what was not synced. The ledger has the latest grants, and
  // the members tell the steps again; the rest was synced long ago.
  [[nodiscard]] Entries resume(const shard_server::Ledger& ledger, const MembershipImage& group);
  [[nodiscard]] StepWatch::Mark mark() const { return steps_.mark(); }
  void kept(const StepWatch::Mark& told) { steps_.kept(told); }
  // Of this generation: every step up to this one is durable. Nothing of others.
  [[nodiscard]] std::optional<Step> kept_through(Generation generation) const;

  void measured(Member m, const wire::Report& sum);
  // How the job stands when a moment is over.
  struct Standing {
    double seconds = 0;  // since the job began
    Step step;
    std::uint64_t samples_done = 0;
    double loss = 0;
  };
  // A second is over, or the job is.
  [[nodiscard]] bool moment_is_over(MonoTime now, bool ends) const;
  [[nodiscard]] Entries moment(const Standing& job, const wire::Plan& plan, const ClusterView& view,
                               MonoTime now);

 private:
  bool external_;
  StepWatch steps_;
  bool refused_ = false;  // a member told what cannot be, and this was said
  std::map<WorkerId, shard_server::WorkerMoment> moment_;  // measured since
  MonoTime moment_from_{};
};

}  // namespace antdt::ctl
