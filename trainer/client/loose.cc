#include "trainer/client/loose.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace antdt::client {
namespace {

constexpr Duration kSlice = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<Loose>> Loose::start(const Environment& environment,
                                            const wire::DataIdentity& data) {
  ANTDT_TRY(auto client, Client::connect(environment));
  return start(std::move(client), data);
}

std::unique_ptr<Loose> Loose::start(std::unique_ptr<Client> client,
                                    const wire::DataIdentity& data) {
  wire::Join join;
  join.pid = static_cast<std::uint32_t>(::getpid());
  join.data = data;
  join.collective = false;
  client->join(join);
  return std::unique_ptr<Loose>(new Loose(std::move(client)));
}

Result<bool> Loose::obey_next(Duration patience) {
  ANTDT_TRY(const auto directive, client_->next_directive(patience));
  if (!directive) return true;
  if (std::holds_alternative<wire::Leave>(directive->order)) return false;
  const auto* phase = std::get_if<wire::PhaseStart>(&directive->order);
  if (phase == nullptr) return true;
  if (phase->what == wire::PhaseKind::kFinish) return false;
  phase_ = *phase;
  place_ = 0;
  client_->begin_phase(phase->phase);
  return true;
}

Result<std::optional<Work>> Loose::next(std::uint64_t max_records) {
  while (true) {
    ANTDT_TRY(auto next, this->next(max_records, kSlice));
    if (next.status == TakeStatus::kEnd) return std::nullopt;
    if (next.status == TakeStatus::kData) return std::move(next.work);
  }
}

Result<Loose::Next> Loose::next(std::uint64_t max_records, Duration patience) {
  if (phase_ && records_ > 0) client_->commit(place_);
  records_ = 0;
  client_->set_activity("shard_wait");
  const SteadyClock clock;
  const MonoTime deadline = clock.now() + patience;
  do {
    const Duration rest = std::clamp(deadline - clock.now(), Duration(0), kSlice);
    if (!phase_) {
      ANTDT_TRY(const bool goes_on, obey_next(rest));
      if (goes_on) continue;
      client_->bye({});
      return Next{TakeStatus::kEnd};
    }
    client_->set_hold(4 * max_records);
    ANTDT_TRY(const Taken taken, client_->take(max_records, rest));
    // Whatever the reason, an order follows or has come.
    const bool over = taken.status == TakeStatus::kEnd || taken.stale ||
                      (taken.status == TakeStatus::kWait && client_->leave_requested());
    if (over) phase_.reset();
    if (taken.status != TakeStatus::kData) continue;
    client_->set_activity("compute");
    place_ += taken.records;
    records_ = taken.records;
    return Next{TakeStatus::kData,
                {phase_->what == wire::PhaseKind::kEval, phase_->epoch, taken.pieces, taken.records,
                 phase_->phase}};
  } while (clock.now() < deadline);
  return Next{};
}

void Loose::skip(std::uint64_t index, std::string reason) {
  if (!phase_ || phase_->what != wire::PhaseKind::kTrain || index >= records_) return;
  const std::uint64_t at = place_ - records_ + index;
  client_->skip({{at, at + 1, std::move(reason)}});
}

void Loose::report(Duration data, Duration compute, Duration wait) {
  client_->report(BatchTimes{records_, data, compute, wait, true});
}

}  // namespace antdt::client
