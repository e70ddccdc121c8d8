// The events and the effects of Membership.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/membership_messages.h"
#include "ctl/processes/end_classes.h"

namespace antdt::ctl {

// A process that is to be a member. `host_order` groups ranks by host.
struct ExpectedMember {
  Member member;
  std::string host;
  std::uint32_t host_order = 0;
  std::string domain = {};  // of the process; "": none
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("worker", m.member.worker);
    v("attempt", m.member.attempt);
    v("host", m.host);
    v("host_order", m.host_order);
    v("domain", m.domain);
  }
};

// A wire::Roster whose list is shared by all members: with one copy for each, it would grow with
// the square of their number.
struct SharedRoster {
  std::shared_ptr<const std::vector<wire::RosterMember>> members;
  [[nodiscard]] wire::Roster for_wire() const { return {*members}; }
};

namespace membership {

// ---------------------------------------------------------------------- inputs

// The processes that are, or will be, members; replaces the previous list. Membership waits for the
// members of the base generation or, if there is no base, for all of them. Other processes take
// part once they have joined.
struct MembersExpected {
  std::vector<ExpectedMember> members;
};
struct MemberJoined {
  Member member;
  Generation generation;  // the newest generation that this member has heard of
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
  bool suspect = false;   // the records it was working on may be why it died
};
// The collective of the settled generation makes no progress.
struct CollectiveStuck {
  std::string reason;
};
// What members hold is of no use any more, because what belongs to it is lost. Nothing is formed
// before TrainingBegun.
struct StateLost {
  std::string reason;
};
// The answer to FormationStands, if no member of the formation waits for a disk.
struct FormationStuck {
  std::string reason;
};
// Whether a generation may be formed: where rows are on servers, only while these serve.
struct FormationAllowed {
  bool allowed = true;
};
// Training begins from a checkpoint, or from the seeded start (empty `restore`).
struct TrainingBegun {
  Lineage lineage;
  std::string restore;  // a directory, as the members see it
};
// A member reads the checkpoint or receives the state, or one that is to join opens its data, and
// more bytes have arrived. The patience with every member begins anew.
struct StateMoved {};
struct TimePassed {};
using Input = std::variant<MembersExpected, MemberJoined, AddressArrived, ReadyArrived, MemberGone,
                           CollectiveStuck, FormationStuck, StateLost, FormationAllowed,
                           TrainingBegun, StateMoved, TimePassed>;

// --------------------------------------------------------------------- effects

// The image has a new generation, which must be durable before any Form is sent.
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
// How far a member of the base was when the new generation settled.
struct BasePlace {
  Member member;
  std::uint64_t place = 0;
  bool lost = false;  // and its records are suspect, see MemberGone
};
// All are ready at the same step. This must be durable before any Settle is sent.
struct SettleGeneration {
  Generation generation;
  Step step;
  std::vector<ExpectedMember> members;  // by rank
  std::uint64_t phase = 0;              // the phase to which `places` belong
  std::vector<BasePlace> places;
  std::string collective = {};  // what carries the bytes between members, in words
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
// For people; the orders that follow from it are separate effects.
struct ReportBroken {
  Generation generation;
  std::string reason;
};
// Members do not fit together (their data or training states differ), or cannot connect for long,
// so no generation can be formed. `reason` says what differs, or what failed, on which hosts.
struct GiveUp {
  std::string reason;
  ExitClass exit_class = ExitClass::kData;
  int code = 2;
};
// No member that is left holds the training state. Answered by TrainingBegun, of the present
// lineage if none of them could read the checkpoint, and it is still the one that training goes on
// from.
struct RestoreState {
  Generation base;
  std::string unread;  // why no member can read that checkpoint just now; empty: none has tried
  std::string checkpoint = {};  // that one
  bool damaged = false;         // it is what they found there, and all try once more
};
// The member did not do what it was asked in time. It must be ended and started again.
struct EndUnresponsive {
  Member member;
  std::string what;
};
// The members have connected, or try to, and nothing has moved for the patience. Each of them may
// wait for another one. Those that wait for a disk are to be ended; if there are none, the answer
// is FormationStuck.
struct FormationStands {
  std::string reason;
};
using Effect =
    std::variant<PersistGeneration, SendForm, SendRoster, SettleGeneration, SendRegroup, SendAbort,
                 ReportBroken, GiveUp, RestoreState, EndUnresponsive, FormationStands>;
using Effects = std::vector<Effect>;

}  // namespace membership

// What survives a restart of the job daemon.
struct MembershipImage {
  Generation generation;  // the newest number that was used
  Generation base;        // 0: none
  bool settled = false;   // the base is in force: its members have not been called together again
  std::vector<ExpectedMember> base_members;  // by rank
  Lineage lineage{1};
  std::string restore;
  std::string collective = {};  // see Membership::collective()
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("generation", m.generation);
    v("base", m.base);
    v("settled", m.settled);
    v("base_members", m.base_members);
    v("lineage", m.lineage);
    v("restore", m.restore);
    v("collective", m.collective);
  }
};

}  // namespace antdt::ctl
