// Which records a worker holds, and what it requests from the shard service.
//
// Pure: the caller reports what happened and when, and poll() returns what to send.
//
//   begin ──> open ──(end)──> ended        nothing is fetched any more
//              │ └──(stale)──> stale       of another phase: wait for begin()
//              └──(wait)──> open, asks again after retry_ms
//
// The place is a count of records since begin(): taken_ is how many were taken, the grants end at
// taken_ plus what is held, and committed places are at most taken_. One request is outstanding at
// a time. It is repeated unchanged, with its number, until it is answered, so a lost reply loses no
// grant.
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
  // How long a stable place may wait for a fetch that carries it.
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
  // The `records` taken records behind the committed place came too late to their step, and are
  // given back with the next request. Until that is answered, nothing behind them may be committed;
  // then the records behind them have their places.
  void give_back(std::uint64_t records) { late_ += records; }
  [[nodiscard]] bool gives_back() const { return stage_ == Stage::kOpen && late_ > 0; }
  // These records of the worker, taken and not committed, were skipped by its program. They are
  // reported with the next requests, no later than they are committed. Until those are answered, no
  // step of a collective that has them may complete.
  void skip(std::vector<wire::SkippedRecords> records);
  [[nodiscard]] bool tells_skips() const { return stage_ == Stage::kOpen && !skips_.empty(); }
  // `place` of `phase` was sent with another message.
  void place_was_sent(std::uint64_t phase, std::uint64_t place);

  // An answer to another than the outstanding request changes nothing.
  void on_grants(std::uint64_t seq, const wire::Grants& grants, MonoTime now);
  // Empty if the recall concerns another phase or generation, while a request is outstanding, or if
  // a later recall was answered. `number` rises from recall to recall; a repeated one gets the same
  // answer and takes back nothing more.
  [[nodiscard]] std::optional<wire::Recalled> on_recall(Generation generation, std::uint64_t number,
                                                        const wire::Recall& recall);

  // What to send now, if anything. It counts as sent.
  [[nodiscard]] std::optional<Request> poll(MonoTime now);
  // When poll() may return something without a further event.
  [[nodiscard]] std::optional<MonoTime> deadline() const;

  [[nodiscard]] std::uint64_t in_hand() const { return in_hand_records_; }
  // Not empty: what the service said that is impossible.
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
  std::uint64_t sent_place_ = 0;             // the place that was last sent
  MonoTime unsent_since_{};                  // since when place_ > sent_place_
  std::vector<wire::EvalPartial> partials_;  // not yet in a request
  std::uint64_t late_ = 0;                   // to be given back, not answered yet
  std::vector<wire::SkippedRecords> skips_;  // not answered yet
  bool dry_ = false;                         // the last answer was kWait
  MonoTime ask_again_at_{};
  std::optional<Outstanding> outstanding_;
  std::uint64_t recall_answered_ = 0;  // number of the recall that was answered last; 0: none
  std::uint64_t recalls_over_ = 0;     // recalls up to this one must be ignored (Grants)
  wire::Recalled recalled_;            // the answer to it
  std::uint64_t last_seq_ = 0;
  std::string problem_;
};

}  // namespace antdt::client
