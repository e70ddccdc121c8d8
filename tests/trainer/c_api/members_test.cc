// Programs on libantdt.so that are members of one job: threads of this process, each with a handle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tests/trainer/c_api/program.h"
#include "tests/trainer/fake_job.h"

namespace antdt {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using trainer::FakeJob;

std::vector<wire::PlanEntry> even(std::uint32_t size) {
  std::vector<wire::PlanEntry> plan;
  for (std::uint32_t i = 0; i < size; ++i) plan.push_back({{'w', i}, 4, 1});
  return plan;
}

// Opened as the agent would have it: by the environment, one after another.
antdt_job* open_member(const FakeJob& job, std::uint32_t index) {
  const client::Environment who = job.environment(index);
  const std::pair<const char*, std::string> variables[] = {
      {"ANTDT_SOCKET", who.socket},
      {"ANTDT_JOB_ID", who.job},
      {"ANTDT_WORKER_ID", to_string(who.self.worker)},
      {"ANTDT_ATTEMPT", std::to_string(who.self.attempt.value)}};
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  antdt_job* opened = nullptr;
  EXPECT_EQ(antdt_open(nullptr, &opened), ANTDT_OK) << antdt_last_error();
  for (const auto& [name, value] : variables) unsetenv(name);
  return opened;
}

constexpr std::uint64_t kRecords = 600;

struct Member {
  Member(const FakeJob& job, std::uint32_t i) : index(i), handle(open_member(job, i)) {
    program = std::make_unique<CountingProgram>(handle, kRecords);
  }
  ~Member() { antdt_close(handle); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  std::uint32_t index;
  antdt_job* handle;
  std::unique_ptr<CountingProgram> program;
  antdt_order end{};
};

bool saw(const Member& member, int kind) {
  return std::ranges::any_of(member.program->log,
                             [&](const antdt_order& order) { return order.kind == kind; });
}

TEST(Members, AMemberLostInTheMiddleOfAStepCostsTheOthersOnlyThatStep) {
  FakeJob job(3, {{wire::PhaseKind::kTrain, kRecords}, {wire::PhaseKind::kTrain, kRecords}},
              even(3));
  std::vector<std::unique_ptr<Member>> members;
  for (std::uint32_t i = 0; i < 3; ++i) members.push_back(std::make_unique<Member>(job, i));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&job, &members, &member] {
      CountingProgram& program = *member->program;
      program.loses_members = true;
      if (member->index != 2) {
        member->end = program.run();
        return;
      }
      antdt_order order = next(member->handle);
      while (order.kind != ANTDT_ORDER_REDUCE || order.step < 20) {
        program.obey(order);
        order = next(member->handle);
      }
      // The other waits for the sum of this step, to which this one adds nothing.
      while (members[0]->program->reduced < order.step) std::this_thread::yield();
      member.reset();  // as if it were killed with its gradient in hand
      job.lose({'w', 2});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint32_t i : {0, 1}) {
    const Member& member = *members[i];
    EXPECT_EQ(member.end.code, 0) << member.end.text;
    EXPECT_THAT(member.program->counts, Each(2.0));
    EXPECT_TRUE(saw(member, ANTDT_ORDER_DISCARD));
    std::vector<std::uint32_t> sizes;
    for (const antdt_order& order : member.program->log) {
      if (order.kind == ANTDT_ORDER_PHASE_BEGIN) sizes.push_back(order.size);
    }
    EXPECT_EQ(sizes, (std::vector<std::uint32_t>{3, 2, 2}));
  }
  EXPECT_TRUE(members[0]->program->interrupted || members[1]->program->interrupted);
}

TEST(Members, AMemberThatComesLaterReceivesTheState) {
  FakeJob job(2, {{wire::PhaseKind::kTrain, kRecords}, {wire::PhaseKind::kTrain, kRecords}},
              even(2));
  job.script.admit_at_step(30, {'w', 2});
  std::vector<std::unique_ptr<Member>> members;
  for (std::uint32_t i = 0; i < 3; ++i) members.push_back(std::make_unique<Member>(job, i));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      member->program->loses_members = true;
      member->end = member->program->run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& member : members) {
    EXPECT_EQ(member->end.code, 0) << member->end.text;
    EXPECT_THAT(member->program->counts, Each(2.0)) << "w" << member->index;
    // At the beginning w1 took the state of rank 0.
    EXPECT_EQ(saw(*member, ANTDT_ORDER_STATE_REPLACED), member->index != 0);
  }
}

TEST(Members, ProgramsThatDoNotReduceTheSameBuffersAreToldSo) {
  FakeJob job(2, {{wire::PhaseKind::kTrain, kRecords}}, even(2));
  std::vector<std::unique_ptr<Member>> members;
  for (std::uint32_t i = 0; i < 2; ++i) members.push_back(std::make_unique<Member>(job, i));
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&job, &member] {
      member->program->loses_members = true;
      std::vector<double> values(100);
      member->end = member->program->run([&](const antdt_order& order) {
        if (order.kind != ANTDT_ORDER_REDUCE) return false;
        EXPECT_EQ(antdt_reduce(member->handle, values.data(), 10 + 5 * member->index, ANTDT_F64),
                  ANTDT_OK);
        antdt_wait(member->handle, kPatience);
        EXPECT_EQ(antdt_done(member->handle), ANTDT_OK);
        return true;
      });
      job.lose({'w', member->index});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool first = members[0]->end.code != 0;
  const antdt_order& end = members[first ? 0 : 1]->end;
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.text,
              AllOf(HasSubstr("does not run the same operations"), HasSubstr("antdt_reduce")));
}

}  // namespace
}  // namespace antdt
