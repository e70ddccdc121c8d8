// What processes read, write or receive that may take long, and whether it moves. Pure.
//
// Patience goes by bytes: who reads a checkpoint from a slow disk is waited for as long as
// bytes come, and who stands still is named with what it is at. Reading and receiving hold
// the others up, who can only wait; writing goes on beside the steps and is no excuse for
// standing still in them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/worker_messages.h"

namespace antdt::ctl {

inline constexpr std::string_view kReadsCheckpoint = "reading the checkpoint";
inline constexpr std::string_view kWritesCheckpoint = "writing the checkpoint";
inline constexpr std::string_view kReceivesState = "receiving the state";
inline constexpr std::string_view kComparesState = "comparing the state";

// Of one process, for people and for JSON.
struct IoProgress {
  std::string what;  // empty: nothing
  std::string path;
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  double bytes_per_second = 0;  // over the last seconds
  bool operator==(const IoProgress&) const = default;
};
// "writing the checkpoint: 3.1 of 12.4 GB, 96 MB/s"
[[nodiscard]] std::string io_text(const IoProgress& io);

// What a report tells of a process's bytes.
enum class IoMoved {
  kNothing,
  kWritten,    // of a checkpoint, beside the steps
  kHeldUpFor,  // others wait for what it reads, receives or compares
};

class IoWatch {
 public:
  explicit IoWatch(Duration patience) : patience_(patience) {}

  // A report says it: which bytes have moved since the last one.
  IoMoved heard(Member member, const wire::Report& report, MonoTime now);
  void forget(Member member) { at_.erase(member); }
  // Nothing can be heard of it now: it has its time anew.
  void excuse(Member member, MonoTime now);

  [[nodiscard]] IoProgress of(Member member) const;
  // It holds others up, with what: to be compared with kReadsCheckpoint.
  [[nodiscard]] bool holds_up(Member member) const;
  [[nodiscard]] bool reads(Member member) const;
  // Somebody holds the others up, and moves.
  [[nodiscard]] bool some_move(MonoTime now) const;
  // Holds others up and has stood still for as long as is waited for: the end of "it is
  // ended: …". Empty: it does not.
  [[nodiscard]] std::string stands_still(Member member, MonoTime now) const;
  [[nodiscard]] std::map<Member, std::string> all_that_stand_still(MonoTime now) const;

 private:
  struct Mark {
    MonoTime at{};
    std::uint64_t bytes = 0;
  };
  struct At {
    IoProgress io;
    MonoTime moved{};  // when it began, or when bytes came last
    Mark before, mark;
  };
  [[nodiscard]] std::string still_text(const At& at) const;

  Duration patience_;
  std::map<Member, At> at_;
};

}  // namespace antdt::ctl
