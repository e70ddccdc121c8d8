// What Membership hears and what it wants done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

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

// A wire::Roster whose list is one for all members: with a copy for each it
// would grow with their square.
struct SharedRoster {
  std::shared_ptr<const std::vector<wire::RosterMember>> members;
  [[nodiscard]] wire::Roster for_wire() const { return {*members}; }
};

namespace membership {

// ---------------------------------------------------------------------- inputs

// The processes that are, or are to be, members; replaces what was said before.
// Members of the base generation, and all of them while there is no base, are
// waited for; others take part once they have joined.
struct MembersExpected {
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
struct CollectiveStuck {
  std::string reason;
};
// Training begins from a checkpoint, or from the seeded start (restore empty).
struct TrainingBegun {
  Lineage lineage;
  std::string restore;  // directory, as the members see it
};
// A member reads the checkpoint or receives the state, and more bytes have
// come: everybody's patience begins anew.
struct StateMoved {};
struct TimePassed {};
using Input = std::variant<MembersExpected, MemberJoined, AddressArrived, ReadyArrived, MemberGone,
                           CollectiveStuck, TrainingBegun, StateMoved, TimePassed>;

// --------------------------------------------------------------------- effects

// The image has a new generation: durable before any Form is sent.
struct PersistGeneration {
  Generation generation;
};
struct SendForm {
  Member to;
  Generation generation;
  wire::Form form;
};
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
// All are ready at the same step. Durable before any Settle is sent.
struct SettleGeneration {
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
struct ReportBroken {
  Generation generation;
  std::string reason;
};
// Members do not fit together (data or training state differ): no membership
// can come of it. `reason` says what differs, on which hosts.
struct GiveUp {
  std::string reason;
  std::string exit_class = "data";
  int code = 2;
};
// Nobody who is left holds the training state. Answered by TrainingBegun.
struct RestoreState {
  Generation base;
};
// It did not do in time what it was asked: it is to be ended and started again.
struct EndUnresponsive {
  Member member;
  std::string what;
};
using Effect = std::variant<PersistGeneration, SendForm, SendRoster, SettleGeneration, SendRegroup,
                            SendAbort, ReportBroken, GiveUp, RestoreState, EndUnresponsive>;
using Effects = std::vector<Effect>;

}  // namespace membership

// What survives a restart of the job daemon.
struct MembershipImage {
  Generation generation;                     // the newest number used
  Generation base;                           // 0: none
  bool settled = false;                      // the base is in force: its members have not been
                                             // called together again
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

}  // namespace antdt::ctl
