// The functions of antdt.h for members: each checks what it was given, and does it.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "include/antdt.h"
#include "trainer/c_api/handle.h"
#include "trainer/c_api/last_error.h"
#include "trainer/c_api/member.h"

using namespace antdt;
using namespace antdt::capi;

struct antdt_job {
  explicit antdt_job(std::unique_ptr<capi::Member> made) : member(std::move(made)) {}
  const OfThisProcess owner;
  std::unique_ptr<capi::Member> member;
  About about;
};

namespace {

constexpr int kLeft = ANTDT_ENDED;

Duration wait_of(std::uint32_t timeout_ms) { return std::chrono::milliseconds(timeout_ms); }

// Runs `call` with the member if the handle is one.
template <class Call>
int with_member(antdt_job* job, const char* function, Call call) {
  return guarded([&]() -> int {
    if (job == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: job is NULL", function));
    if (!job->owner.here()) return failed(ANTDT_FORKED, job->owner.forked(function));
    return call(*job->member);
  });
}

int misused(const Status& status) {
  return status ? ANTDT_OK : failed(ANTDT_USAGE, status.error().message);
}
int misused(const char* function, const char* what) {
  return failed(ANTDT_USAGE, fmt::format("{}: {}", function, what));
}

// The state may be written or read by the library but while an order is in hand.
Status may_register(capi::Member& member, const char* function) {
  if (!member.started() || member.exchange().in_hand() != 0) return {};
  return fail(ErrorKind::kUsage,
              "{}: after the first antdt_next parts are registered while an order is in hand",
              function);
}

}  // namespace

extern "C" {

const char* antdt_last_error(void) { return last_error(); }
uint32_t antdt_abi_version(void) { return ANTDT_ABI_VERSION; }
const char* antdt_version(void) { return ANTDT_RELEASE; }
const char* antdt_order_name(int32_t kind) { return name_of_order(kind); }

int antdt_open(const antdt_options* options, antdt_job** job) {
  return guarded([&]() -> int {
    if (job == nullptr) return misused("antdt_open", "job is NULL");
    *job = nullptr;
    const auto settings = Settings::of(options);
    if (!settings) return failed(ANTDT_USAGE, settings.error().message);
    auto member = capi::Member::open(*settings);
    if (!member) return failed(member.error());
    auto made = std::make_unique<antdt_job>(std::move(*member));
    made->about = About(made->member->client(), made->member->in_job());
    *job = made.release();
    return ANTDT_OK;
  });
}

void antdt_close(antdt_job* job) {
  if (job == nullptr) return;
  // In a child of the process that opened it there are no threads to end.
  if (!job->owner.here()) return;
  std::ignore = guarded([&]() -> int {
    delete job;
    return ANTDT_OK;
  });
}

int antdt_describe(antdt_job* job, antdt_about* about) {
  return with_member(job, "antdt_describe", [&](capi::Member&) -> int {
    return copy_out("antdt_describe", "about", job->about.fields(), about);
  });
}

int antdt_register(antdt_job* job, const antdt_part* given) {
  return with_member(job, "antdt_register", [&](capi::Member& member) -> int {
    const auto part = copy_in("antdt_register", "part", given);
    if (!part) return failed(ANTDT_USAGE, part.error().message);
    if (part->name == nullptr) return misused("antdt_register", "part.name is NULL");
    if (part->data == nullptr && part->bytes > 0) {
      return misused("antdt_register", "part.data is NULL");
    }
    if (const Status may = may_register(member, "antdt_register"); !may) return misused(may);
    StatePart made{part->name, part->dtype, {}, {}};
    const std::uint64_t element = std::max<std::uint64_t>(1, size_of_dtype(part->dtype));
    if (part->shape != nullptr) {
      made.shape.assign(part->shape, part->shape + part->dimensions);
    } else {
      made.shape = {part->bytes / element};
    }
    made.bytes = {static_cast<std::byte*>(part->data), static_cast<std::size_t>(part->bytes)};
    const bool grows = !member.started() || member.exchange().in_hand() == ANTDT_ORDER_APPLY;
    return misused(member.state().put(std::move(made), grows));
  });
}

int antdt_unregister(antdt_job* job, const char* name) {
  return with_member(job, "antdt_unregister", [&](capi::Member& member) -> int {
    if (name == nullptr) return misused("antdt_unregister", "name is NULL");
    if (member.started() && member.exchange().in_hand() != ANTDT_ORDER_APPLY) {
      return misused("antdt_unregister",
                     "after the first antdt_next that is for the order 'apply' alone");
    }
    return misused(member.state().remove(name));
  });
}

int antdt_next(antdt_job* job, antdt_order* order, uint32_t timeout_ms) {
  return with_member(job, "antdt_next", [&](capi::Member& member) -> int {
    if (const int wrong = check_out("antdt_next", "order", order); wrong != ANTDT_OK) return wrong;
    member.start();
    if (member.exchange().over()) {
      return failed(kLeft,
                    "antdt_next: the order to leave was given, nothing follows: antdt_close "
                    "and exit");
    }
    const auto next = member.exchange().take(wait_of(timeout_ms));
    if (!next) return failed(ANTDT_USAGE, next.error().message);
    if (*next == nullptr) return ANTDT_TIMEOUT;
    return copy_out("antdt_next", "order", (*next)->fields, order);
  });
}

int antdt_done(antdt_job* job) {
  return with_member(job, "antdt_done", [&](capi::Member& member) -> int {
    if (member.exchange().in_hand() == ANTDT_ORDER_REDUCE && !member.reductions().idle()) {
      return misused("antdt_done", "buffers are still being reduced: antdt_wait first");
    }
    return misused(member.exchange().answer({}));
  });
}

int antdt_done_compute(antdt_job* job, double weight, double loss) {
  return with_member(job, "antdt_done_compute", [&](capi::Member& member) -> int {
    if (!(weight >= 0) || weight > 1e300) {
      return misused("antdt_done_compute", "the weight is not a number from 0 on");
    }
    return misused(member.exchange().answer({AnswerKind::kSums, weight, loss}));
  });
}

namespace {

// The sums in the order of their names.
Result<wire::NamedSums> named_sums(const antdt_metrics& sums) {
  wire::NamedSums named;
  if (sums.named_count > 0 && sums.named == nullptr) {
    return fail(ErrorKind::kUsage, "sums.named_count is above 0, and sums.named is NULL");
  }
  for (const antdt_sum& one : std::span(sums.named, sums.named_count)) {
    if (one.name == nullptr) return fail(ErrorKind::kUsage, "a named sum's name is NULL");
    named.push_back({one.name, one.sum});
  }
  std::ranges::sort(named, {}, &wire::NamedSum::name);
  ANTDT_RETURN_IF_ERROR(wire::check_sums(named));
  return named;
}

}  // namespace

int antdt_done_evaluate(antdt_job* job, const antdt_metrics* given) {
  return with_member(job, "antdt_done_evaluate", [&](capi::Member& member) -> int {
    const auto sums = copy_in("antdt_done_evaluate", "sums", given);
    if (!sums) return failed(ANTDT_USAGE, sums.error().message);
    Answer answer{AnswerKind::kMetrics};
    answer.partial.records = sums->records;
    answer.partial.loss_sum = sums->loss_sum;
    answer.partial.correct = sums->correct;
    if (sums->bins > 0) {
      if (sums->bin == nullptr || sums->negatives == nullptr || sums->positives == nullptr) {
        return misused("antdt_done_evaluate", "sums.bins is above 0, and an array of bins is NULL");
      }
      const std::span bins(sums->bin, sums->bins);
      const bool rising = std::ranges::adjacent_find(bins, std::greater_equal<>()) == bins.end();
      if (!rising || bins.back() >= ANTDT_SCORE_BINS) {
        return misused("antdt_done_evaluate", "sums.bin is not rising, or beyond ANTDT_SCORE_BINS");
      }
      answer.partial.bins.assign(bins.begin(), bins.end());
      answer.partial.negatives.assign(sums->negatives, sums->negatives + sums->bins);
      answer.partial.positives.assign(sums->positives, sums->positives + sums->bins);
    }
    auto named = named_sums(*sums);
    if (!named) return misused("antdt_done_evaluate", named.error().message.c_str());
    answer.partial.named = std::move(*named);
    return misused(member.exchange().answer(std::move(answer)));
  });
}

int antdt_evaluated(antdt_job* job, antdt_evaluation* evaluation) {
  return with_member(job, "antdt_evaluated", [&](capi::Member& member) -> int {
    return copy_out("antdt_evaluated", "evaluation", member.evaluations().told(), evaluation);
  });
}

int antdt_failed(antdt_job* job, const char* why) {
  return with_member(job, "antdt_failed", [&](capi::Member& member) -> int {
    Answer answer{AnswerKind::kFailed};
    answer.why = why == nullptr ? "it did not say why" : why;
    return misused(member.exchange().answer(std::move(answer)));
  });
}

int antdt_skip(antdt_job* job, uint64_t record, const char* reason) {
  return with_member(job, "antdt_skip", [&](capi::Member& member) -> int {
    const auto order = member.exchange().order_with(record);
    if (!order) return failed(ANTDT_USAGE, order.error().message);
    const std::string why = kept_reason(reason);
    const Status added = member.skipped().add(record, order->phase, order->epoch, why);
    if (!added) return failed(added.error());
    return misused(member.exchange().skip(record, why));
  });
}

int antdt_reduce(antdt_job* job, void* values, uint64_t count, int32_t dtype) {
  return with_member(job, "antdt_reduce", [&](capi::Member& member) -> int {
    if (values == nullptr && count > 0) return misused("antdt_reduce", "values is NULL");
    if (dtype != ANTDT_F32 && dtype != ANTDT_F64) {
      return misused("antdt_reduce", "dtype is neither ANTDT_F32 nor ANTDT_F64");
    }
    const Status added = member.reductions().add(values, count, dtype);
    if (added) return ANTDT_OK;
    const bool broken = added.error().kind == ErrorKind::kAborted;
    return failed(broken ? ANTDT_INTERRUPTED : ANTDT_USAGE, added.error().message);
  });
}

int antdt_wait(antdt_job* job, uint32_t timeout_ms) {
  return with_member(job, "antdt_wait", [&](capi::Member& member) -> int {
    switch (member.reductions().wait(wait_of(timeout_ms))) {
      case Reductions::Waited::kDone:
        return ANTDT_OK;
      case Reductions::Waited::kNotYet:
        return ANTDT_TIMEOUT;
      case Reductions::Waited::kBroken:
        break;
    }
    return ANTDT_INTERRUPTED;
  });
}

int antdt_is_over(antdt_job* job) {
  return with_member(job, "antdt_is_over", [&](capi::Member& member) -> int {
    return member.generation_is_over() ? 1 : 0;
  });
}

int antdt_ahead(antdt_job* job, uint64_t generation, uint64_t phase, uint64_t* from,
                uint64_t* records, uint64_t capacity, uint64_t* count, uint32_t timeout_ms) {
  return with_member(job, "antdt_ahead", [&](capi::Member& member) -> int {
    if (from == nullptr || records == nullptr || count == nullptr || capacity == 0) {
      return misused("antdt_ahead", "from, records or count is NULL, or capacity is 0");
    }
    *count = 0;
    const std::span room(records, static_cast<std::size_t>(capacity));
    const auto told =
        member.upcoming().tell(Generation{generation}, phase, *from, room, wait_of(timeout_ms));
    if (!told) return ANTDT_INTERRUPTED;
    *count = *told;
    return *told > 0 ? ANTDT_OK : ANTDT_TIMEOUT;
  });
}

int antdt_end_training(antdt_job* job, const char* reason) {
  return with_member(job, "antdt_end_training", [&](capi::Member& member) -> int {
    if (!member.started()) {
      return misused("antdt_end_training",
                     "no training has begun: it comes after the first antdt_next");
    }
    const std::string why = kept_reason(reason);
    member.end_training(why.empty() ? "it gave no reason" : why);
    return ANTDT_OK;
  });
}

int antdt_leave(antdt_job* job) {
  // A signal handler may do no more than this.
  if (job == nullptr) return ANTDT_USAGE;
  if (!job->owner.here()) return ANTDT_FORKED;
  job->member->leave();
  return ANTDT_OK;
}

}  // extern "C"
