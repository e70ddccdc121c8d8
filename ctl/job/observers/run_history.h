// What is written to the run's history (shard_server/history/history.h). An observer of the job: it
// is shown what happens, and returns what should be stored: which member was granted which part of
// the stream, how many records of each member every step took, and what workers measured, second by
// second. Only collectives have steps; for loose clients nothing is stored and nothing is computed.
//
// Nothing here is durable: what a power failure took is written again (resume).
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

  // What a member of the settled collective holds; empty for other members.
  struct Holding {
    std::uint64_t phase = 0;
    std::uint64_t end = 0;
  };
  [[nodiscard]] std::optional<Holding> holding(const shard_server::Ledger& ledger,
                                               const Membership& membership, Member m,
                                               Generation g) const;
  [[nodiscard]] static Entries changed(const shard_server::Ledger& ledger, Member m,
                                       const Holding& before);

  struct Steps {
    Entries entries;
    // why the steps that were told are impossible; empty if they are possible, or if it was
    // reported before
    std::string refused;
  };
  [[nodiscard]] Steps hear(const wire::StepHistory& told, Step step);
  [[nodiscard]] shard_server::history::Entry settled(const membership::SettleGeneration& settled,
                                                     Lineage lineage);
  // A power failure takes what was not synced. The ledger has the latest grants and the members
  // report their steps again; everything else was synced long ago.
  [[nodiscard]] Entries resume(const shard_server::Ledger& ledger, const MembershipImage& group);
  [[nodiscard]] StepWatch::Mark mark() const { return steps_.mark(); }
  void kept(const StepWatch::Mark& told) { steps_.kept(told); }
  // Every step up to this one is durable, if `generation` is the present one. Empty for others.
  [[nodiscard]] std::optional<Step> kept_through(Generation generation) const;

  void measured(Member m, const wire::Report& sum);
  // The state of the job when a moment is over.
  struct Standing {
    double seconds = 0;  // since the job began
    Step step;
    std::uint64_t samples_done = 0;
    double loss = 0;
  };
  // Whether a second is over, or the job.
  [[nodiscard]] bool moment_is_over(MonoTime now, bool ends) const;
  [[nodiscard]] Entries moment(const Standing& job, const wire::Plan& plan, const ClusterView& view,
                               MonoTime now);

 private:
  bool external_;
  StepWatch steps_;
  bool refused_ = false;  // a member reported impossible steps, and this was logged
  std::map<WorkerId, shard_server::WorkerMoment>
      moment_;  // what was measured since the last moment
  MonoTime moment_from_{};
};

}  // namespace antdt::ctl
