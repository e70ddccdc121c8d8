// Who trains together: one membership at a time, each with a number.
//
//   kGathering ──all expected joined──> kAddresses ──all addresses──> kConnecting
//       ^                                                                 │ all ready, same step
//       and hash └────────── Lost or Expect changes the members ──────────────  kSettled
//
// A value without I/O: step() takes what happened and returns what to do. The
// job daemon owns one; the generation number is durable through its `Settled`
// and `GenerationBegun` effects (the daemon journals them before anything that
// follows them is sent). Neighbours learn each other's end points from the
// roster; there is no store and no full mesh.
//
// In this version a member that is lost breaks the generation for good (the
// job ends with the cause). Draining and healing come between kSettled and
// kGathering; nothing else in here has to change for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/wire/messages.h"

namespace antdt::ctl {

// One process that is to be a member. `host_order` sorts ranks host by host.
struct ExpectedMember {
  Member member;
  std::string host;
  std::uint32_t host_order = 0;
};

// ---- events
struct Expect {  // the members of the next generation; replaces earlier ones
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
struct MemberGone {
  Member member;
  std::string reason;
};
using MembershipEvent =
    std::variant<Expect, MemberJoined, AddressArrived, ReadyArrived, MemberGone>;

// ---- effects
struct GenerationBegun {  // durable before any Form is sent
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
  wire::Roster roster;
};
struct Settled {  // durable before any Settle is sent
  Generation generation;
  Step step;
  std::vector<ExpectedMember> members;  // by rank
};
struct GenerationBroken {  // tell those that are left to abort their collectives
  Generation generation;
  std::vector<Member> left;
  std::string reason;
};
// Members do not fit together (data or training state differ): no membership
// can come of it. `reason` says what differs, on which hosts.
struct CannotSettle {
  std::string reason;
};
using MembershipEffect =
    std::variant<GenerationBegun, SendForm, SendRoster, Settled, GenerationBroken, CannotSettle>;

class Membership {
 public:
  enum class State { kGathering, kAddresses, kConnecting, kSettled };

  // `job_key` seeds the keys with which neighbours recognise each other.
  explicit Membership(std::uint64_t job_key) : job_key_(job_key) {}

  [[nodiscard]] std::vector<MembershipEffect> step(const MembershipEvent& event);

  // A settled generation as the journal remembers it.
  void restore(Generation generation, std::vector<ExpectedMember> members_by_rank);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Generation generation() const { return generation_; }
  // By rank, of the present generation; empty while gathering.
  [[nodiscard]] const std::vector<ExpectedMember>& members() const { return members_; }
  [[nodiscard]] bool contains(Member member) const;
  // Expected members that have not joined yet.
  [[nodiscard]] std::vector<Member> missing() const;

 private:
  using Effects = std::vector<MembershipEffect>;
  void on(const Expect& event, Effects& effects);
  void on(const MemberJoined& event, Effects& effects);
  void on(const AddressArrived& event, Effects& effects);
  void on(const ReadyArrived& event, Effects& effects);
  void on(const MemberGone& event, Effects& effects);
  void form_again(const MemberJoined& event, Effects& effects);
  void begin_if_complete(Effects& effects);
  [[nodiscard]] SendForm form_for(std::size_t rank) const;
  [[nodiscard]] SendRoster roster_for(std::size_t rank) const;
  void settle(Effects& effects);
  [[nodiscard]] std::size_t rank_of(Member member) const;  // members_.size() if none

  std::uint64_t job_key_;
  State state_ = State::kGathering;
  Generation generation_;
  std::vector<ExpectedMember> expected_;
  std::map<Member, wire::Join> joined_;
  std::vector<ExpectedMember> members_;
  std::map<Member, wire::Address> addresses_;
  std::map<Member, wire::Ready> ready_;
  std::uint32_t failed_formations_ = 0;  // since the last settled generation
};

}  // namespace antdt::ctl
