// Who trains together: one membership at a time, each with a number.
//
//   kGathering ──all required joined──> kAddresses ──all addresses──>
//   kConnecting
//     ^  ^                                  ^                              │
//     all ready, same │  │                                  │ all required
//     joined          v step and hash │  │lost out of order, or kRegrouping <──
//     a newcomer is ready, kSettled │  └─one of them has stopped ─────┘ a
//     member left in order   │ ├── lost, formation failed ──(kAddresses,
//     kConnecting)                  │ └── lost out of order, stuck
//     ───────────────────────────────────────────┘
//
// In both kGathering and kRegrouping members are to join. In kRegrouping those
// of the base have been told to stop together at the end of a step; in
// kGathering the ones that have not joined are told to break off.
//
// Joining, leaving, death, eviction and resizing are this one mechanism. The
// settled generation whose training state goes on is the *base*: its members
// are told to stop (SendRegroup: together, at the end of a step; SendAbort: out
// of a collective that cannot complete), join again and say whether they still
// hold that state; those who do not receive it over the new ring (the members
// arrange that among themselves: trainer/worker/member/heal_plan.h). The new
// generation is settled when all are ready at the same step with the same hash
// (agreement.h). If somebody is lost before, it is computed again from who is
// left: the base stays. Nobody rolls back while one member holds the state;
// when none does, RestoreState asks for a checkpoint, and TrainingBegun starts
// a new lineage from it. One member reads it (Form says who:
// checkpoint_reader.h), the others receive it as they would another member's
// state; where that one cannot, or dies over it, the next formation names
// another, on another host if there is one.
//
// A value without I/O: step() takes what happened and appends what to do.
// Durable is image(): the job journals it when PersistGeneration or
// SettleGeneration is among the effects, before anything that follows them is
// sent. Members that are between two generations say so themselves, and what
// they say again is answered; so nothing else is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "ctl/membership/agreement.h"
#include "ctl/membership/checkpoint_reader.h"
#include "ctl/membership/member_list.h"
#include "ctl/membership/membership_events.h"

namespace antdt::ctl::membership {

class Membership {
 public:
  enum class State : std::uint8_t { kGathering, kRegrouping, kAddresses, kConnecting, kSettled };

  // `secret`: drawn by whoever runs this incarnation of the job daemon, and
  // never kept. The secrets of the generations are made of it, with which
  // members prove to each other that they are some. `patience`: after it a
  // member that is waited for is to be ended. A process that has just been
  // started has longer, kStartPatience at least.
  static constexpr Duration kStartPatience = std::chrono::seconds(60);
  Membership(const crypto::Secret& secret, Duration patience)
      : secret_(secret), patience_(patience) {}

  // Appends to `out`.
  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] MembershipImage image() const;
  void restore(const MembershipImage& image);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool settled() const { return state_ == State::kSettled; }
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] Lineage lineage() const { return lineage_; }
  // The settled generation whose training state goes on; 0: none.
  [[nodiscard]] Generation base() const { return base_; }
  // By rank, of the generation that is settled or forming; else of the base.
  [[nodiscard]] const std::vector<ExpectedMember>& members() const { return members_.all(); }
  [[nodiscard]] bool contains(Member member) const { return members_.contains(member); }
  // Those that are waited for, and for what ("to join", …); for people.
  [[nodiscard]] std::vector<Member> missing() const;
  [[nodiscard]] std::string waiting_for() const;

 private:
  void on(const MembersExpected& e, Effects& out);
  void on(const MemberJoined& e, Effects& out);
  void on(const AddressArrived& e, Effects& out);
  void on(const ReadyArrived& e, Effects& out);
  void on(const MemberGone& e, Effects& out);
  void on(const CollectiveStuck& e, Effects& out);
  void on(const TrainingBegun& e, Effects& out);
  void on(const StateMoved& e, Effects& out);
  void on(const TimePassed& e, Effects& out);

  // Members are to join.
  [[nodiscard]] bool gathering() const {
    return state_ == State::kGathering || state_ == State::kRegrouping;
  }
  [[nodiscard]] bool forming() const {
    return state_ == State::kAddresses || state_ == State::kConnecting;
  }
  [[nodiscard]] bool reads_checkpoint() const { return base_ == Generation{} && !restore_.empty(); }
  // Members of the base are waited for; while there is none, or nobody of it is
  // left, everybody is.
  [[nodiscard]] bool some_of_base_expected() const;
  void gather(State how);
  void begin_if_complete(Effects& out);
  void form(Effects& out);
  void settle(Effects& out);
  void lose(const MemberGone& e, Effects& out);
  void formation_failed(const MemberJoined& e, Effects& out);
  void abort_others(Member but, const std::string& reason, Effects& out);
  // Of a formation that is over, or that a former incarnation began.
  void abort_stray(Member member, Generation generation, Effects& out);
  void regroup_for_newcomers(Effects& out);
  void repeat_orders(Effects& out);
  [[nodiscard]] SendForm form_for(std::size_t rank) const;
  void check_invariants() const;

  crypto::Secret secret_;
  Duration patience_;
  State state_ = State::kGathering;
  Generation generation_;
  Generation base_;
  MemberList base_members_;
  Lineage lineage_{1};
  std::string restore_;
  MemberList expected_;  // as they would have ranks
  MemberList members_;
  Member waits_for_;  // gathering: one who had not joined when it was last
                      // looked at
  std::map<Member, MonoTime> expected_since_;
  std::map<Member, wire::Join> joined_;  // since the last generation that they were in ended
  std::map<Member, wire::Address> addresses_;
  Agreement ready_;
  CheckpointReader reader_;              // of `restore_`
  std::set<Member> suspects_;            // of the base, see MemberGone
  std::uint32_t failed_formations_ = 0;  // since the last settled generation
  bool state_lost_ = false;              // said, and TrainingBegun has not come
  MonoTime now_{};
  MonoTime since_{};  // of the present state
  MonoTime told_{};   // gathering: when members were told so last
};

}  // namespace antdt::ctl::membership

namespace antdt::ctl {
using membership::Membership;
}  // namespace antdt::ctl
