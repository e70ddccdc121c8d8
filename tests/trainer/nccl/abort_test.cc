// How groups that use NCCL end: aborts, deaths, errors, and a library that does not end.
#include <fstream>

#include "tests/trainer/nccl/testing.h"

namespace antdt::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Calls `abort` from another thread once `when` is so, and returns how long `call` took after that.
std::chrono::nanoseconds aborted_after(const std::function<bool()>& when,
                                       const std::function<void()>& abort,
                                       const std::function<void()>& call) {
  std::chrono::steady_clock::time_point at;
  std::thread other([&] {
    await(when);
    at = std::chrono::steady_clock::now();
    abort();
  });
  call();
  other.join();
  return std::chrono::steady_clock::now() - at;
}

// The name of a file that does not exist yet.
std::string a_file(const std::string& name) {
  std::string path = fmt::format("{}antdt-nccl-{}-{}", ::testing::TempDir(), getpid(), name);
  std::filesystem::remove(path);
  return path;
}

std::string was_aborted(const Status& status, std::chrono::nanoseconds took) {
  if (status) return "the call succeeded";
  if (status.error().kind != ErrorKind::kAborted) return status.error().message;
  return took < seconds(5) ? "" : "the abort took longer than 5 s";
}

TEST(NcclAbort, EndsFormingWhileAnotherMemberHangsThere) {
  const std::string marks = a_file("forming-");
  Group group(
      {{"device=own marks=" + marks}, {"device=own init_hangs marks=" + marks}},
      [&](Member& member) -> std::string {
        const std::string own_mark = marks + std::to_string(getpid());
        if (auto prepared = member.prepare(); !prepared) return prepared.error().message;
        Status status;
        const auto took =
            aborted_after(  // Both are inside NCCL: one that comes after an abort meets nobody.
                [&] {
                  if (std::filesystem::exists(own_mark)) member.cell.note = 1;
                  return member.cells[0]->note == 1 && member.cells[1]->note == 1;
                },

                [&] { member.builder->abort(); },
                [&] {
                  if (auto formed = member.connect(); !formed) {
                    status = tl::unexpected(formed.error());
                  }
                });
        std::filesystem::remove(own_mark);
        return was_aborted(status, took);
      });
  group.expect_all_well();
}

// Rank 1 never does the second all-reduce: a device that hangs.
TEST(NcclAbort, EndsAnAllReduceThatHangs) {
  Group group({{"device=own"}, {"device=own hang_op=2"}, {"device=own"}},
              [](Member& member) -> std::string {
                auto formed = member.form();
                if (!formed) return formed.error().message;
                Status status = sum_once(member, **formed);
                if (!status) return status.error().message;
                const auto took = aborted_after([&] { return member.cell.note == 1; },
                                                [&] { (*formed)->abort(); },
                                                [&] {
                                                  member.cell.note = 1;
                                                  status = sum_once(member, **formed);
                                                });
                std::string trouble = was_aborted(status, took);
                if (!trouble.empty()) return trouble;
                // Every later call fails at once.
                status = sum_once(member, **formed);
                return status ? "a later call succeeded" : "";
              });
  group.expect_all_well();
}

// As a job daemon would: it sees that a process has gone, and ends the generation for the others.
TEST(NcclAbort, SurvivorsOfAKilledMemberAreReleasedAndFormAGroupAgain) {
  Group group({{"device=own"}, {"device=own"}, {"device=own"}}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    Status status;
    const auto took =
        aborted_after([&] { return member.cells[2]->note == 99; }, [&] { (*formed)->abort(); },
                      [&] {
                        while (status) {
                          status = sum_once(member, **formed);
                          ++member.cell.note;
                        }
                      });
    std::string trouble = was_aborted(status, took);
    if (!trouble.empty()) return trouble;
    formed->reset();
    member.size = 2;
    member.cells.pop_back();
    member.cell.ready = false;
    member.cell.note = -1;
    await([&] { return member.cells[0]->note < 0 && member.cells[1]->note < 0; });
    auto again = member.form();
    if (!again) return again.error().message;
    return message_of(sum_once(member, **again));
  });
  await([&] { return group.cell(2).note > 5; });
  group.kill_member(2);
  group.cell(2).note = 99;
  group.expect_all_well();
}

TEST(NcclAbort, ALibraryThatSeesADeathEndsTheCallWithoutAnAbort) {
  const MemberSetup sees{"device=own sees_death"};
  Group group({sees, sees, sees}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    Status status;
    while (status) {
      status = sum_once(member, **formed);
      ++member.cell.note;
    }
    if (status.error().kind != ErrorKind::kIo) return status.error().message;
    return status.error().message.find("ncclRemoteError") == std::string::npos
               ? status.error().message
               : "";
  });
  await([&] { return group.cell(2).note > 5; });
  group.kill_member(2);
  group.expect_all_well();
}

// The error is reported by ncclCommGetAsyncError while the operation never completes.
TEST(NcclAbort, AnAsynchronousErrorOfOneMemberEndsItsCall) {
  for (const auto& [code, kind, word] :
       {std::tuple{1, ErrorKind::kInternal, "ncclUnhandledCudaError"},
        std::tuple{2, ErrorKind::kIo, "ncclSystemError"},
        std::tuple{3, ErrorKind::kInternal, "ncclInternalError"},
        std::tuple{6, ErrorKind::kIo, "ncclRemoteError"}}) {
    const MemberSetup fails{fmt::format("device=own error_op=1 error={}", code)};
    Group group({{"device=own"}, fails}, [kind = kind, word = word](Member& member) -> std::string {
      auto formed = member.form();
      if (!formed) return formed.error().message;
      if (member.rank == 0) {
        Status status;
        const auto took =
            aborted_after([&] { return member.cells[1]->note == 1; }, [&] { (*formed)->abort(); },
                          [&] { status = sum_once(member, **formed); });
        return was_aborted(status, took);
      }
      const Status status = sum_once(member, **formed);
      member.cell.note = 1;
      if (status) return "the call succeeded";
      if (status.error().kind != kind) return "wrong kind: " + status.error().message;
      const bool names_it = status.error().message.find(word) != std::string::npos;
      return names_it ? "" : status.error().message;
    });
    group.expect_all_well();
  }
}

TEST(NcclAbort, AnErrorWhileNobodyWaitsIsFoundByTheWatchdog) {
  const std::string now = a_file("error-now");
  Group group({{"device=own"}, {"device=own error_op=1 error=6 error_when=" + now}},
              [&](Member& member) -> std::string {
                OnDevice memory(*(*member.backend)->cuda, 400);
                auto formed = member.form();
                if (!formed) return formed.error().message;
                const Status put = (*formed)->device()->enqueue_sum(
                    {memory.data(), 100, DeviceType::kFloat32}, memory.stream());
                if (!put) return put.error().message;
                if (member.rank == 0) {
                  await([&] { return member.cells[1]->note == 1; });
                  (*formed)->abort();
                  return "";
                }
                const std::ofstream mark(now);
                // The work of the stream ends although no call of the group is made.
                const Event event = *(*member.backend)->cuda->make_event();
                if (!(*member.backend)->cuda->record(event, memory.stream())) return "no event";
                await([&] { return *(*member.backend)->cuda->query(event) == Work::kDone; });
                member.cell.note = 1;
                const Status status = (*formed)->device()->finish();
                if (status) return "the error was forgotten";
                return status.error().kind == ErrorKind::kIo ? "" : status.error().message;
              });
  group.expect_all_well();
  std::filesystem::remove(now);
}

TEST(NcclAbort, FormingThatFailsSaysWhy) {
  Group group({{"device=own init_error=2"}, {"device=own init_error=2"}},
              [](Member& member) -> std::string {
                auto formed = member.form();
                if (formed) return "the group was formed";
                const std::string& text = formed.error().message;
                return text.find("ncclSystemError") != std::string::npos ? "" : text;
              });
  group.expect_all_well();
}

TEST(NcclAbort, FormingThatTakesTooLongIsGivenUp) {
  MemberSetup hangs{"device=own init_hangs"};
  hangs.patience.forming = milliseconds(300);
  Group group({hangs, hangs}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (formed) return "the group was formed";
    if (formed.error().kind != ErrorKind::kIo) return formed.error().message;
    const std::string& text = formed.error().message;
    return text.find("took longer than") != std::string::npos ? "" : text;
  });
  group.expect_all_well();
}

// In half of the time in which the job daemon would end all members that are not ready. They can
// join again then, and form a group without the one that hangs.
TEST(NcclAbort, MembersWithOneThatHangsInFormingAreReleasedAndFormAGroupAgain) {
  MemberSetup well, hangs{"device=own init_hangs"};
  well.patience = hangs.patience = communicator::patience_in(seconds(2));
  Group group({well, well, hangs}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (formed) return "the group was formed";
    if (formed.error().kind != ErrorKind::kIo) return formed.error().message;
    if (member.rank == 2) return "";
    member.setup.patience = {};
    member.size = 2;
    member.cells.pop_back();
    member.cell.ready = false;
    member.cell.note = -1;
    await([&] { return member.cells[0]->note < 0 && member.cells[1]->note < 0; });
    auto again = member.form();
    if (!again) return again.error().message;
    return message_of(sum_once(member, **again));
  });
  group.expect_all_well();
}

// ncclCommAbort itself, a call, or the device hangs: the caller is released nevertheless, and the
// process forms no other group.
TEST(NcclAbort, WhatDoesNotEndIsGivenUpAndSaysThatTheWorkerMustBeStartedAgain) {
  for (const std::string how : {"abort_hangs", "call_hangs", "kernel_hangs hang_op=1"}) {
    const std::string hanging = a_file("hanging");
    MemberSetup hangs{"device=own " + how + " hangs_mark=" + hanging};
    hangs.patience.aborting = hangs.patience.late_caller = milliseconds(300);
    Group group({hangs, {"device=own hang_op=1"}}, [&](Member& member) -> std::string {
      // Not freed: the device may still write to it.
      auto& memory = *new OnDevice(*(*member.backend)->cuda, 400);
      auto formed = member.form();
      if (!formed) return formed.error().message;
      Status status;
      const auto took =
          aborted_after([&] { return member.cell.note == 1 || std::filesystem::exists(hanging); },
                        [&] { (*formed)->abort(); },
                        [&] {
                          status = (*formed)->device()->enqueue_sum(
                              {memory.data(), 100, DeviceType::kFloat32}, memory.stream());
                          member.cell.note = 1;
                          if (status) status = (*formed)->device()->finish();
                        });
      if (member.rank == 1) return was_aborted(status, took);
      if (status) return "the call succeeded";
      if (took > seconds(10)) return "the caller was released too late";
      if (status.error().kind != ErrorKind::kInternal) return status.error().message;
      if (status.error().message.find("has to be started again") == std::string::npos) {
        return status.error().message;
      }
      formed->reset();
      const Status again = member.prepare();
      if (again) return "a process with a stuck communicator begins another group";
      return again.error().kind == ErrorKind::kInternal ? "" : again.error().message;
    });
    group.expect_all_well();
    std::filesystem::remove(hanging);
  }
}

}  // namespace
}  // namespace antdt::nccl
