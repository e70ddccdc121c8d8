// Orders to the program and its answers.
//
//   idle ──ask()──> offered ──take()──> in hand ──answer()──> idle
//     └──end()──> last offered ──take()──> ended
//
// The thread of the member's driver asks and waits; threads of the program take and answer. One
// order at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/wire/shard_messages.h"
#include "include/antdt.h"

namespace antdt::capi {

// antdt_order with what its pointers point to.
struct Order {
  antdt_order fields{};
  std::vector<std::uint64_t> records = {};
  std::string text = {};
};

enum class AnswerKind : std::uint8_t { kDone, kSums, kMetrics, kFailed };
struct Answer {
  AnswerKind kind = AnswerKind::kDone;
  double weight = 0;
  double loss = 0;
  wire::EvalPartial partial = {};
  std::string why = {};  // kFailed
  // Of the order's records, by index. Filled in by Exchange.
  std::map<std::uint32_t, std::string> skipped = {};
};

[[nodiscard]] const char* name_of_order(std::int32_t kind);

class Exchange {
 public:
  // Offers an order and waits for the answer. kInternal with the program's words if it failed;
  // kAborted once the handle is closed.
  [[nodiscard]] Result<Answer> ask(Order order);
  // The order to leave, which nothing follows.
  void end(Order order);
  // ask() fails from now on.
  void close();

  // The next order, valid until it is answered; null after `timeout`. An error (kUsage) while one
  // is in hand, or after the last.
  [[nodiscard]] Result<const Order*> take(Duration timeout);
  [[nodiscard]] bool over() const;
  // What the program has in hand; ANTDT_ORDER_LEAVE and 0 for nothing.
  [[nodiscard]] std::int32_t in_hand() const;
  // The order in hand, if that is one of records and has this one; else an error (kUsage).
  [[nodiscard]] Result<antdt_order> order_with(std::uint64_t record) const;
  // The answer to the order in hand will say that this record of it is skipped. The first reason
  // counts. An error (kUsage) as in order_with.
  [[nodiscard]] Status skip(std::uint64_t record, std::string reason);
  // An error (kUsage) if no order is in hand that is answered so.
  [[nodiscard]] Status answer(Answer answer);

 private:
  enum class State : std::uint8_t { kIdle, kOffered, kInHand, kLastOffered, kEnded };
  [[nodiscard]] Status check_locked(const Answer& answer) const;
  [[nodiscard]] Result<std::uint32_t> index_locked(std::uint64_t record) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool closed_ = false;
  Order order_;
  std::map<std::uint32_t, std::string> skipped_;  // of the order in hand
  std::optional<Answer> answer_;
};

}  // namespace antdt::capi
