// Reads, writes and transfers of processes that may take long, and whether they make progress.
// Pure.
//
// Progress is measured in bytes: a worker that reads a checkpoint from a slow disk is waited for as
// long as bytes arrive, and a worker that makes no progress is named with what it was doing.
// Reading and receiving hold up the other workers, which can only wait. Writing happens beside the
// steps and does not excuse a worker that stops making steps. A worker opens its data before it
// joins: whoever waits for it to join is patient as long as bytes arrive, and nobody else is.
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
inline constexpr std::string_view kOpensData = "opening the data";  // by means of a program's own
inline constexpr std::string_view kIndexesData = "indexing the data";
inline constexpr std::string_view kChecksIndex = "checking the index of the data";
inline constexpr std::string_view kWaitsForIndex = "waiting for another process to index the data";

// The progress of one process, for people and for JSON.
struct IoProgress {
  std::string what;  // what it reads, writes or receives; empty: nothing
  std::string path;
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;  // 0: not known
  double bytes_per_second = 0;    // mean of the last seconds
  bool operator==(const IoProgress&) const = default;
};
// "writing the checkpoint: 3.1 of 12.4 GB, 96 MB/s"
[[nodiscard]] std::string io_text(const IoProgress& io);

// What a report says about a process's bytes.
enum class IoMoved {
  kNothing,
  kWritten,    // bytes of a checkpoint that is written beside the steps
  kHeldUpFor,  // bytes that others wait for: it reads, receives or compares
  kOpened,     // bytes of the data that it opens before it joins
};
// Whether a phrase says that a worker opens its data.
[[nodiscard]] bool opens_data(std::string_view what);

class IoWatch {
 public:
  explicit IoWatch(Duration patience) : patience_(patience) {}

  // Evaluates a report: which bytes have moved since the last one.
  IoMoved heard(Member member, const wire::Report& report, MonoTime now);
  void forget(Member member) { at_.erase(member); }
  // Nothing can be heard of the member now, so its patience begins anew.
  void excuse(Member member, MonoTime now);

  [[nodiscard]] IoProgress of(Member member) const;
  // Whether it holds others up, and with what; compare with kReadsCheckpoint.
  [[nodiscard]] bool holds_up(Member member) const;
  [[nodiscard]] bool reads(Member member) const;
  // Whether it opens its data, indexes them, or checks their index; not if it waits for another
  // that does.
  [[nodiscard]] bool indexes(Member member) const;
  // Whether it reads a checkpoint or opens its data.
  [[nodiscard]] bool uses_disk(Member member) const { return reads(member) || indexes(member); }
  // Whether some process holds the others up and makes progress.
  [[nodiscard]] bool some_move(MonoTime now) const;
  // If the process holds others up, or opens its data, and has made no progress for as long as it
  // is waited for: the end of the sentence "it is ended: …". Otherwise empty.
  [[nodiscard]] std::string stands_still(Member member, MonoTime now) const;
  // Of those that hold others up in their steps. Not of those that receive: a member waits there for
  // another that sends, or sums what it is to send.
  [[nodiscard]] std::map<Member, std::string> all_that_stand_still(MonoTime now) const;

 private:
  struct Mark {
    MonoTime at{};
    std::uint64_t bytes = 0;
  };
  struct At {
    IoProgress io;
    MonoTime moved{};  // when it began, or when bytes last arrived
    Mark before, mark;
  };
  [[nodiscard]] std::string still_text(const At& at) const;

  Duration patience_;
  std::map<Member, At> at_;
};

}  // namespace antdt::ctl
