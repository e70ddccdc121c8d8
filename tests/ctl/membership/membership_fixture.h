// A Membership, and helpers that lead to the situation of a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "ctl/membership/membership.h"

namespace antdt::ctl::membership {

using std::chrono::seconds;

inline Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}

class MembershipTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = seconds(120);

  MembershipTest() { clock.advance(seconds(1)); }

  template <class T>
  static std::vector<T> all(const Effects& effects) {
    std::vector<T> found;
    for (const auto& e : effects) {
      if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
    }
    return found;
  }
  static std::vector<Member> members_of(const std::vector<ExpectedMember>& expected) {
    std::vector<Member> members;
    for (const ExpectedMember& e : expected) members.push_back(e.member);
    return members;
  }
  static wire::Join join(const std::string& fingerprint = "f") {
    wire::Join j;
    j.data = {1000, 100, fingerprint, "1000 records, fingerprint " + fingerprint};
    return j;
  }
  // The join of a member that still holds the state of the generation `base`.
  static wire::Join holding(Generation base) {
    wire::Join j = join();
    j.settled = base;
    return j;
  }

  Effects step(const Input& event) {
    Effects effects;
    m.step(event, clock.now(), effects);
    return effects;
  }
  void given(const Input& event) { std::ignore = step(event); }

  // w0 and w1 are on host a, the others on b.
  Effects expect(const std::vector<Member>& members) {
    MembersExpected event;
    for (const Member member : members) {
      const bool on_a = member.worker.index < 2;
      event.members.push_back({member, on_a ? "a" : "b", on_a ? 0U : 1U});
    }
    return step(event);
  }
  // The member joins from the newest generation, with the state of the settled one.
  Effects joins(Member member) {
    return step(MemberJoined{member, m.generation(), holding(m.image().base)});
  }
  Effects join_all(const std::vector<Member>& members) {
    Effects last;
    for (const Member member : members) last = joins(member);
    return last;
  }
  Effects connect_all() {
    Effects last;
    for (const ExpectedMember& e : m.members()) {
      const std::string name = to_string(e.member.worker);
      last = step(AddressArrived{e.member, m.generation(), {"at " + name}});
    }
    return last;
  }
  Effects ready(Member member, std::uint64_t at,
                const std::vector<wire::MemberPlace>& places = {}) {
    return step(ReadyArrived{member, m.generation(), {Step{at}, 77, 1, places}});
  }
  SettleGeneration settle_formed(const std::vector<wire::MemberPlace>& places = {}) {
    connect_all();
    Effects last;
    const auto members = m.members();
    for (const ExpectedMember& e : members) last = ready(e.member, 5, places);
    const auto settled = all<SettleGeneration>(last);
    EXPECT_EQ(settled.size(), 1U);
    return settled.empty() ? SettleGeneration{} : settled.front();
  }
  SettleGeneration settle(const std::vector<Member>& members) {
    if (m.settled()) given(CollectiveStuck{"for the test"});
    expect(members);
    join_all(members);
    return settle_formed();
  }

  ManualClock clock;
  Membership m{crypto::Secret(), kPatience};
};

}  // namespace antdt::ctl::membership
