#include "trainer/c_api/program/exchange.h"

#include <algorithm>
#include <array>
#include <utility>

namespace antdt::capi {
namespace {

AnswerKind answer_of(std::int32_t order) {
  if (order == ANTDT_ORDER_COMPUTE) return AnswerKind::kSums;
  return order == ANTDT_ORDER_EVALUATE ? AnswerKind::kMetrics : AnswerKind::kDone;
}

const char* name_of(AnswerKind kind) {
  static constexpr std::array kNames = {"antdt_done", "antdt_done_compute", "antdt_done_evaluate",
                                        "antdt_failed"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

const char* name_of_order(std::int32_t kind) {
  static constexpr std::array kNames = {
      "none",           "compute",      "reduce",      "apply",     "discard", "evaluate",
      "state-replaced", "state-wanted", "phase-begin", "phase-end", "leave"};
  const auto index = static_cast<std::size_t>(kind);
  return kind < 0 || index >= kNames.size() ? "unknown" : kNames[index];
}

Result<Answer> Exchange::ask(Order order) {
  std::unique_lock lock(mutex_);
  const auto is_closed = [] { return fail(ErrorKind::kAborted, "the program closed the job"); };
  if (closed_) return is_closed();
  order_ = std::move(order);
  order_.fields.records = order_.records.empty() ? nullptr : order_.records.data();
  order_.fields.count = order_.records.size();
  order_.fields.text = order_.text.c_str();
  answer_.reset();
  skipped_.clear();
  state_ = State::kOffered;
  changed_.notify_all();
  changed_.wait(lock, [&] { return answer_ || closed_; });
  if (!answer_) return is_closed();
  if (answer_->kind != AnswerKind::kFailed) return *std::exchange(answer_, std::nullopt);
  return fail(ErrorKind::kInternal, "the program failed at '{}': {}",
              name_of_order(order_.fields.kind), answer_->why);
}

void Exchange::end(Order order) {
  const std::lock_guard lock(mutex_);
  order_ = std::move(order);
  order_.fields.text = order_.text.c_str();
  state_ = State::kLastOffered;
  changed_.notify_all();
}

void Exchange::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Result<const Order*> Exchange::take(Duration timeout) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kInHand) {
    return fail(ErrorKind::kUsage,
                "the order '{}' has not been answered: call {} (or antdt_failed) before the next "
                "antdt_next",
                name_of_order(order_.fields.kind), name_of(answer_of(order_.fields.kind)));
  }
  const auto there = [&] { return state_ == State::kOffered || state_ == State::kLastOffered; };
  if (state_ == State::kEnded) {
    return fail(ErrorKind::kUsage, "the order to leave was given: nothing follows");
  }
  if (!there() && timeout > Duration(0)) changed_.wait_for(lock, timeout, there);
  if (!there()) return nullptr;
  state_ = state_ == State::kOffered ? State::kInHand : State::kEnded;
  return &order_;
}

bool Exchange::over() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kEnded;
}

std::int32_t Exchange::in_hand() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kEnded) return ANTDT_ORDER_LEAVE;
  return state_ == State::kInHand ? order_.fields.kind : 0;
}

Result<antdt_order> Exchange::order_with(std::uint64_t record) const {
  const std::lock_guard lock(mutex_);
  ANTDT_RETURN_IF_ERROR(index_locked(record));
  return order_.fields;
}

Status Exchange::skip(std::uint64_t record, std::string reason) {
  const std::lock_guard lock(mutex_);
  ANTDT_TRY(const std::uint32_t index, index_locked(record));
  skipped_.try_emplace(index, std::move(reason));
  return {};
}

Result<std::uint32_t> Exchange::index_locked(std::uint64_t record) const {
  const auto found = std::ranges::find(order_.records, record);
  if (state_ == State::kInHand && found != order_.records.end()) {
    return static_cast<std::uint32_t>(found - order_.records.begin());
  }
  return fail(ErrorKind::kUsage, "antdt_skip: record {} is not one of an order in hand", record);
}

Status Exchange::check_locked(const Answer& answer) const {
  if (state_ != State::kInHand) {
    return fail(ErrorKind::kUsage, "{}: no order is in hand; antdt_next gives one",
                name_of(answer.kind));
  }
  const AnswerKind wanted = answer_of(order_.fields.kind);
  if (answer.kind != AnswerKind::kFailed && answer.kind != wanted) {
    return fail(ErrorKind::kUsage, "{}: the order '{}' is answered by {}", name_of(answer.kind),
                name_of_order(order_.fields.kind), name_of(wanted));
  }
  return {};
}

Status Exchange::answer(Answer answer) {
  const std::lock_guard lock(mutex_);
  if (const Status status = check_locked(answer); !status) return status;
  answer_ = std::move(answer);
  answer_->skipped = std::exchange(skipped_, {});
  state_ = State::kIdle;
  changed_.notify_all();
  return {};
}

}  // namespace antdt::capi
