// Which records a worker has in hand, and what to ask the shard service.
//
// Pure: the caller says what happened and when, and asks poll() what to send.
//
//   begin ──> open ──(end)──> ended        nothing is fetched any more
//              │ └──(stale)──> stale       of another phase: wait for begin()
//              └──(wait)──> open, asks again after retry_ms
//
// The place is a count of records since begin(): taken_ is how many were taken,
// taken_ + in hand is where the grants end, and committed places are at most
// taken_. One request is outstanding at a time; it is repeated unchanged, with
// its number, until it is answered, so a lost reply loses no grant.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/shard_messages.h"
#include "trainer/client/client.h"

namespace antdt::client {

class ShardFeed {
 public:
  static constexpr Duration kRepeatAfter = std::chrono::seconds(2);
  // How long a stable place may wait for a fetch that takes it along.
  static constexpr Duration kCommitWithin = std::chrono::milliseconds(50);

  struct Request {
    std::uint64_t seq = 0;
    Generation generation;
    wire::Fetch fetch;
  };

  void begin(std::uint64_t phase, Generation generation);
  void set_hold(std::uint64_t records) { hold_ = records; }
  [[nodiscard]] Taken take(std::uint64_t max_records);
  void commit(std::uint64_t place, std::optional<wire::EvalPartial> partial, MonoTime now);
  // Of the records taken, so many behind the committed place came too late to their step:
  // they go back with the next request. Until that is answered nothing behind them may be
  // committed; then those behind them have their places.
  void give_back(std::uint64_t records) { late_ += records; }
  [[nodiscard]] bool gives_back() const { return stage_ == Stage::kOpen && late_ > 0; }
  // `place` of `phase` went with another message.
  void place_was_sent(std::uint64_t phase, std::uint64_t place);

  // Answers that are not to the outstanding request change nothing.
  void on_grants(std::uint64_t seq, const wire::Grants& grants, MonoTime now);
  // Nothing when it is about another phase or generation, or while a request is
  // outstanding, or when a later one was answered. `number` rises from recall to
  // recall; one that comes again gets the same answer and takes back nothing more.
  [[nodiscard]] std::optional<wire::Recalled> on_recall(Generation generation, std::uint64_t number,
                                                        const wire::Recall& recall);

  // What to send now, if anything; it counts as sent.
  [[nodiscard]] std::optional<Request> poll(MonoTime now);
  // When poll() may have something without a further event.
  [[nodiscard]] std::optional<MonoTime> deadline() const;

  [[nodiscard]] std::uint64_t in_hand() const { return in_hand_records_; }
  // Not empty: the service said something that cannot be, and what.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  enum class Stage { kIdle, kOpen, kEnded, kStale };
  struct Outstanding {
    Request request;
    MonoTime sent_at;
  };

  [[nodiscard]] bool wants_more() const { return in_hand_records_ < hold_; }
  [[nodiscard]] bool has_commit() const { return !partials_.empty() || place_ > sent_place_; }
  [[nodiscard]] MonoTime commit_due() const;
  void add(const wire::Piece& piece);

  Stage stage_ = Stage::kIdle;
  std::uint64_t phase_ = 0;
  Generation generation_;
  std::uint64_t hold_ = 0;
  std::deque<wire::Piece> in_hand_;
  std::uint64_t in_hand_records_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t place_ = 0;                  // stable
  std::uint64_t sent_place_ = 0;             // of it, told
  MonoTime unsent_since_{};                  // since when place_ > sent_place_
  std::vector<wire::EvalPartial> partials_;  // not yet in a request
  std::uint64_t late_ = 0;                   // to be given back, and not answered
  bool dry_ = false;                         // the last answer was kWait
  MonoTime ask_again_at_{};
  std::optional<Outstanding> outstanding_;
  std::uint64_t recall_answered_ = 0;  // its number; 0: none
  std::uint64_t recalls_over_ = 0;     // not to be obeyed any more (Grants)
  wire::Recalled recalled_;            // that answer
  std::uint64_t last_seq_ = 0;
  std::string problem_;
};

}  // namespace antdt::client
