// Which workers train together: one membership at a time, each with a number, its generation.
//
//   kGathering ──all required joined──> kAddresses ──all addresses──> kConnecting
//     ^  ^  ^                                ^                             │
//     │  │  │                                │ all required joined         │ all are ready, with
//     │  │  └── one has stopped, or ─── kRegrouping                        │ one step and hash
//     │  │      was lost out of order        ^                             v
//     │  │                                   └── a newcomer is ready,── kSettled
//     │  │                                       or one left in order      │
//     │  └── one was lost, or the formation failed ── (kAddresses, kConnecting)
//     └── one was lost out of order, or the collective is stuck ───────────┘
//
//   kGathering, kRegrouping ──nobody holds the base's state──> kRestoring
//   kGathering ──no member can read the checkpoint──> kRestoring
//   kRestoring ──training begins from a checkpoint──> kGathering
//
// In kGathering, kRegrouping and kRestoring, members are to join. In kRegrouping the members of the
// base were told to stop together at the end of a step; in the others the members that have not
// joined were told to break off. In kRestoring no generation is formed.
//
// Joining, leaving, death, eviction and resizing all work by this one mechanism. The settled
// generation whose training state goes on is the *base*. Its members are told to stop (SendRegroup:
// together, at the end of a step; SendAbort: out of a collective that cannot complete), join again,
// and report whether they still hold that state. Those that do not hold it receive it over the new
// ring (the members arrange that among themselves: trainer/worker/member/heal_plan.h). The new
// generation is settled when all are ready at the same step with the same hash (agreement.h). If a
// member is lost before that, a new generation is formed from those that are left, and the base
// stays. Nobody rolls back while one member holds the state. When none does, RestoreState asks for
// a checkpoint (after StateLost one is asked for already), and TrainingBegun starts a new
// lineage from it. One member reads it (Form says which: checkpoint_reader.h), and the others
// receive it like another member's state. If that member cannot read it, or dies while it reads,
// the next formation names another one, on another host if possible. If none can, RestoreState asks
// again for the checkpoint from which training goes on; if it is the content of the files, only
// once for each checkpoint, since their copies may be bad and the original good.
//
// Members that connect and heal wait for one another, so when nothing moves any more, nobody can
// say from outside who is at fault: all are called together again, and who does not come is ended.
//
// A formation that fails is tried again, after pauses, until it has failed for too long
// (failed_formations.h).
//
// A value without I/O: step() takes what happened and appends what to do. Durable is image(): the
// job journals it when PersistGeneration or SettleGeneration is among the effects, before anything
// that follows them is sent. Nothing else needs to be durable, because members that are between two
// generations report that themselves, and repeated reports are answered.
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
#include "ctl/membership/failed_formations.h"
#include "ctl/membership/member_list.h"
#include "ctl/membership/membership_events.h"

namespace antdt::ctl::membership {

class Membership {
 public:
  enum class State : std::uint8_t {
    kGathering,
    kRegrouping,
    kRestoring,
    kAddresses,
    kConnecting,
    kSettled
  };

  // `secret`: drawn by the process that runs this incarnation of the job daemon, and never stored.
  // The secret of each generation is derived from it; with that, members prove to each other that
  // they belong to the generation. `patience`: how long a member is waited for before it is ended.
  // A process that has just been started is given at least kStartPatience.
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
  // What carried the bytes between the members of the last generation that settled, in words.
  [[nodiscard]] const std::string& collective() const { return collective_; }
  // Whether it asked for a checkpoint again because no member can read this one just now.
  [[nodiscard]] bool could_not_read(const std::string& directory) const {
    return state_ == State::kRestoring && reads_checkpoint() && restore_ == directory;
  }
  // The settled generation whose training state goes on; 0: none.
  [[nodiscard]] Generation base() const { return base_; }
  // By rank: the members of the generation that is settled or forming, otherwise those of the base.
  [[nodiscard]] const std::vector<ExpectedMember>& members() const { return members_.all(); }
  [[nodiscard]] bool contains(Member member) const { return members_.contains(member); }
  // The members that are waited for, and for what ("to join", …), for people.
  [[nodiscard]] std::vector<Member> missing() const;
  [[nodiscard]] std::string waiting_for() const;
  // Whether it is one of those that are to join first.
  [[nodiscard]] bool awaits(Member member) const;

 private:
  void on(const MembersExpected& e, Effects& out);
  void on(const MemberJoined& e, Effects& out);
  void on(const AddressArrived& e, Effects& out);
  void on(const ReadyArrived& e, Effects& out);
  void on(const MemberGone& e, Effects& out);
  void on(const CollectiveStuck& e, Effects& out);
  void on(const FormationStuck& e, Effects& out);
  void on(const StateLost& e, Effects& out);
  void on(const FormationAllowed& e, Effects& out);
  void on(const TrainingBegun& e, Effects& out);
  void on(const StateMoved& e, Effects& out);
  void on(const TimePassed& e, Effects& out);

  // Whether members are to join.
  [[nodiscard]] bool gathering() const {
    return state_ == State::kGathering || state_ == State::kRegrouping ||
           state_ == State::kRestoring;
  }
  [[nodiscard]] bool forming() const {
    return state_ == State::kAddresses || state_ == State::kConnecting;
  }
  [[nodiscard]] bool reads_checkpoint() const { return base_ == Generation{} && !restore_.empty(); }
  // Whether some member of the base is expected. If so, only the members of the base are waited
  // for; otherwise every expected process is.
  [[nodiscard]] bool some_of_base_expected() const;
  [[nodiscard]] bool is_to_read(Member member) const;
  void gather(State how);
  void begin_if_complete(Effects& out);
  void nobody_can_read(const CheckpointReader::Why& why, Effects& out);
  void form(Effects& out);
  void settle(Effects& out);
  void lose(const MemberGone& e, Effects& out);
  void formation_failed(const MemberJoined& e, Effects& out);
  [[nodiscard]] GiveUp cannot_form(const std::string& reason) const;
  void abort_others(Member but, const std::string& reason, Effects& out);
  // Releases a member from a formation that is over, or that an earlier incarnation began.
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
  std::string collective_;
  std::string restore_;
  MemberList expected_;  // in the order in which they would get ranks
  MemberList members_;
  Member waits_for_;  // gathering: one that had not joined when this was last checked
  std::map<Member, MonoTime> expected_since_;
  // joins since the last generation that the member was in ended
  std::map<Member, wire::Join> joined_;
  bool unlike_ = false;  // of the generation that is formed: see Form::unlike
  std::map<Member, wire::Address> addresses_;
  Agreement ready_;
  CheckpointReader reader_;    // reader of `restore_`
  Generation begun_after_;     // what members say of this one and earlier ones is not of `restore_`
  std::string damaged_;        // of which members said so, and were to try once more
  std::set<Member> suspects_;  // members of the base, see MemberGone
  FailedFormations failed_;    // since the last settled generation
  bool may_form_ = true;       // as FormationAllowed said last
  MonoTime now_{};
  MonoTime since_{};  // when the present state began
  MonoTime told_{};   // gathering: when members were last told to join
};

}  // namespace antdt::ctl::membership

namespace antdt::ctl {
using membership::Membership;
}  // namespace antdt::ctl
