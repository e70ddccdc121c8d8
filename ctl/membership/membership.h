// Who trains together: one membership at a time, each with a number.
//
//   kGathering ──all required joined──> kAddresses ──all addresses──> kConnecting
//     ^  ^                                  ^                              │ all ready, same
//     │  │                                  │ all required joined          v step and hash
//     │  │lost out of order, or      kRegrouping <── a newcomer is ready, kSettled
//     │  └─one of them has stopped ─────┘            a member left in order   │
//     ├── lost, formation failed ──(kAddresses, kConnecting)                  │
//     └── lost out of order, stuck ───────────────────────────────────────────┘
//
// In both kGathering and kRegrouping members are to join. In kRegrouping those of the base have
// been told to stop together at the end of a step; in kGathering the ones that have not joined
// are told to break off.
//
// Joining, leaving, death, eviction and resizing are this one mechanism. The
// settled generation whose training state goes on is the *base*: its members
// are told to stop (SendRegroup: together, at the end of a step; SendAbort: out
// of a collective that cannot complete), join again and say whether they still
// hold that state; those who do not receive it over the new ring (the members
// arrange that among themselves: trainer/loop/state/healing.h). The new generation is
// settled when all are ready at the same step with the same hash. If somebody
// is lost before, it is computed again from who is left: the base stays.
// Nobody rolls back while one member holds the state; when none does, StateLost
// asks for a checkpoint, and Begin starts a new lineage from it. One member reads it (Form
// says who), the others receive it as they would another member's state; where that one
// cannot, or dies over it, the next formation names another, on another host if there is one.
//
// A value without I/O: step() takes what happened and returns what to do. The
// job daemon owns one and journals image() when GenerationBegun or Settled is
// among the effects, before anything that follows them is sent.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

// One process that is to be a member. `host_order` sorts ranks host by host.
struct ExpectedMember {
  Member member;
  std::string host;
  std::uint32_t host_order = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.member.worker);
    v("attempt", m.member.attempt);
    v("host", m.host);
    v("host_order", m.host_order);
  }
};

// ---- events
// The processes that are, or are to be, members; replaces what was said before.
// Members of the base generation, and all of them while there is no base, are
// waited for; others take part once they have joined.
struct Expect {
  std::vector<ExpectedMember> members;
};
struct MemberJoined {
  Member member;
  Generation generation;  // the newest that this member has heard of
  wire::Join join;
};
struct AddressArrived {
  Member member;
  Generation generation;
  wire::Address address;
};
struct ReadyArrived {
  Member member;
  Generation generation;
  wire::Ready ready;
};
// A process has ended, or its host is lost.
struct MemberGone {
  Member member;
  std::string reason;
  bool in_order = false;  // it left at the end of a step, as it was asked to
  bool suspect = false;   // what it was working on may be why it died
};
// The collective of the settled generation does not move.
struct Stuck {
  std::string reason;
};
// Training begins from a checkpoint, or from the seeded start (restore empty).
struct Begin {
  Lineage lineage;
  std::string restore;  // directory, as the members see it
};
// A member reads the checkpoint or receives the state, and more bytes have come: all are
// waited for anew.
struct StateMoves {};
struct MembershipTick {};
using MembershipEvent = std::variant<Expect, MemberJoined, AddressArrived, ReadyArrived, MemberGone,
                                     Stuck, Begin, StateMoves, MembershipTick>;

// A wire::Roster whose list all members share.
struct SharedRoster {
  std::shared_ptr<const std::vector<wire::RosterMember>> members;
  [[nodiscard]] wire::Roster for_wire() const { return {*members}; }
};

// ---- effects
struct GenerationBegun {  // durable before any Form is sent
  Generation generation;
};
struct SendForm {
  Member to;
  Generation generation;
  wire::Form form;
};
// The list of members is one for all: each a copy would be their square.
struct SendRoster {
  Member to;
  Generation generation;
  SharedRoster roster;
};
// Where a member of the base stood when the new generation settled.
struct BasePlace {
  Member member;
  std::uint64_t place = 0;
  bool lost = false;  // and suspect, see MemberGone
};
struct Settled {  // durable before any Settle is sent
  Generation generation;
  Step step;
  std::vector<ExpectedMember> members;  // by rank
  std::uint64_t phase = 0;              // that `places` belong to
  std::vector<BasePlace> places;
};
struct SendRegroup {
  Generation generation;
  std::vector<Member> to;
  std::string reason;
};
struct SendAbort {
  Generation generation;
  std::vector<Member> to;
  std::string reason;
};
// For people; the orders that follow from it are effects of their own.
struct GenerationBroken {
  Generation generation;
  std::string reason;
};
// Members do not fit together (data or training state differ): no membership
// can come of it. `reason` says what differs, on which hosts.
struct CannotSettle {
  std::string reason;
  std::string exit_class = "data";
  int code = 2;
};
// Nobody who is left holds the training state. Answered by Begin.
struct StateLost {
  Generation base;
};
// Did not do in time what was asked: to be ended and started again.
struct Unresponsive {
  Member member;
  std::string what;
};
using MembershipEffect =
    std::variant<GenerationBegun, SendForm, SendRoster, Settled, SendRegroup, SendAbort,
                 GenerationBroken, CannotSettle, StateLost, Unresponsive>;

// What survives a restart of the job daemon.
struct MembershipImage {
  Generation generation;  // the newest number used
  Generation base;        // 0: none
  bool settled = false;   // the base is in force: its members have not been called together again
  std::vector<ExpectedMember> base_members;  // by rank
  Lineage lineage{1};
  std::string restore;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("generation", m.generation);
    v("base", m.base);
    v("settled", m.settled);
    v("base_members", m.base_members);
    v("lineage", m.lineage);
    v("restore", m.restore);
  }
};

class Membership {
 public:
  enum class State : std::uint8_t { kGathering, kRegrouping, kAddresses, kConnecting, kSettled };

  // `secret`: drawn by whoever runs this incarnation of the job daemon, and never kept. Those of
  // the generations are made of it, with which members prove to each other that they are some.
  // `patience`: after it a member that is waited for is Unresponsive. A process
  // that has just been started has longer, kStartPatience at least.
  static constexpr Duration kStartPatience = std::chrono::seconds(60);
  Membership(const crypto::Secret& secret, Duration patience)
      : secret_(secret), patience_(patience) {}
  // What members wait for comes: their patience begins anew.
  void excuse(MonoTime now) { since_ = now; }

  [[nodiscard]] std::vector<MembershipEffect> step(const MembershipEvent& event, MonoTime now);

  [[nodiscard]] MembershipImage image() const;
  // Members that are between two generations say so themselves: what they send
  // again is answered.
  void restore(const MembershipImage& image);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool settled() const { return state_ == State::kSettled; }
  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] Lineage lineage() const { return lineage_; }
  // The settled generation whose training state goes on; 0: none.
  [[nodiscard]] Generation base() const { return base_; }
  // By rank, of the generation that is settled or forming; else of the base.
  [[nodiscard]] const std::vector<ExpectedMember>& members() const { return members_; }
  [[nodiscard]] bool contains(Member member) const;
  // Those that are waited for, and for what ("to join", …); for people.
  [[nodiscard]] std::vector<Member> missing() const;
  [[nodiscard]] std::string waiting_for() const;

 private:
  using Effects = std::vector<MembershipEffect>;
  void on(const Expect& event, Effects& effects);
  void on(const MemberJoined& event, Effects& effects);
  void on(const AddressArrived& event, Effects& effects);
  void on(const ReadyArrived& event, Effects& effects);
  void on(const MemberGone& event, Effects& effects);
  void on(const Stuck& event, Effects& effects);
  void on(const Begin& event, Effects& effects);
  void on(const StateMoves& event, Effects& effects);
  void on(const MembershipTick& event, Effects& effects);

  // Members are to join.
  [[nodiscard]] bool gathering() const {
    return state_ == State::kGathering || state_ == State::kRegrouping;
  }
  [[nodiscard]] bool forming() const {
    return state_ == State::kAddresses || state_ == State::kConnecting;
  }
  [[nodiscard]] bool is_expected(Member member) const { return expected_ids_.contains(member); }
  [[nodiscard]] bool in_base(Member member) const { return base_ids_.contains(member); }
  [[nodiscard]] bool some_of_base_expected() const;
  void set_members(std::vector<ExpectedMember> members);
  void set_base(std::vector<ExpectedMember> members);
  void gather(State how);
  void check_invariants() const;
  void abort_others(Member but, const std::string& reason, Effects& effects);
  void member_gone(const MemberGone& event, Effects& effects);
  void formation_failed(const MemberJoined& event, Effects& effects);
  void regroup_for_newcomers(Effects& effects);
  void repeat_orders(Effects& effects);
  void begin_if_complete(Effects& effects);
  [[nodiscard]] std::optional<CannotSettle> data_differs() const;
  void form(Effects& effects);
  [[nodiscard]] bool reads_checkpoint() const { return base_ == Generation{} && !restore_.empty(); }
  void hear_unreadable(const MemberJoined& event);
  void reading_failed(Member reader);
  [[nodiscard]] std::optional<CannotSettle> nobody_can_read() const;
  [[nodiscard]] std::uint32_t choose_reader() const;
  [[nodiscard]] SendForm form_for(std::size_t rank) const;
  [[nodiscard]] SharedRoster roster() const;
  void hear_ready(const ReadyArrived& event);
  void settle(Effects& effects);
  [[nodiscard]] std::optional<CannotSettle> state_differs() const;
  [[nodiscard]] std::size_t rank_of(Member member) const;  // members_.size() if none

  crypto::Secret secret_;
  Duration patience_;
  State state_ = State::kGathering;
  Generation generation_;
  Generation base_;
  std::vector<ExpectedMember> base_members_;
  Lineage lineage_{1};
  std::string restore_;
  std::vector<ExpectedMember> expected_;  // sorted as ranks are
  // Who is in base_members_, expected_ and members_: asked with every message.
  std::set<Member> base_ids_;
  std::set<Member> expected_ids_;
  std::map<Member, std::size_t> ranks_;
  Member waits_for_;  // gathering: one who had not joined when it was last looked at
  std::map<Member, MonoTime> expected_since_;
  std::map<Member, wire::Join> joined_;  // since the last generation that they were in ended
  std::vector<ExpectedMember> members_;
  std::map<Member, wire::Address> addresses_;
  // Places only of the first to be ready: the others' must be the same, and are as
  // many for each of them as there are members.
  std::map<Member, wire::Ready> ready_;
  Member first_ready_;
  std::optional<Member> places_differ_;
  std::set<Member> suspects_;            // of the base, see MemberGone
  std::uint32_t failed_formations_ = 0;  // since the last settled generation
  // Of `restore_`: the rank that reads it, how often that failed, by host and by worker, and
  // what the workers that could not read it said.
  std::uint32_t reader_ = 0;
  std::map<std::string, std::uint32_t> failed_reads_on_;
  std::map<WorkerId, std::uint32_t> failed_reads_;
  std::map<WorkerId, std::string> unreadable_;
  bool state_lost_ = false;  // said, and Begin has not come
  MonoTime now_{};
  MonoTime since_{};  // of the present state
  MonoTime told_{};   // gathering: when members were told so last
};

}  // namespace antdt::ctl
