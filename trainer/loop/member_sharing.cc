// Shared steps of a member of a collective (trainer/worker/sharing).
#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/os/net.h"
#include "trainer/data/pieces.h"
#include "trainer/loop/member_driver.h"

namespace antdt::trainer {
namespace {

using worker::Input;
using worker::TimeUse;

constexpr std::size_t kAddressBytes = 64;  // with its zero

// What a generation may be blocked in.
struct HeldTogether {
  std::shared_ptr<Collective> collective;
  std::shared_ptr<ShareLink> link;
  void abort() const {
    collective->abort();
    link->abort();
  }
};

}  // namespace

// Every member learns the address of its group's desk by the collective.
Status MemberDriver::connect_sharing(const std::string& host, const GroupKey& key) {
  const std::uint32_t size = collective_->size();
  if (!parts_.sharing || size < 2) return {};
  ANTDT_TRY(auto link, ShareLink::open(host, collective_->rank(), size, key, *parts_.sharing));
  share_link_ = std::move(link);
  tools_.guard.hold(std::make_shared<HeldTogether>(HeldTogether{collective_, share_link_}));
  ANTDT_TRY(const std::string mine, share_link_->address());
  std::array<char, kAddressBytes> own{};
  ANTDT_CHECK(mine.size() < own.size(), "an address of {} bytes", mine.size());
  std::ranges::copy(mine, own.begin());
  std::vector<char> all(own.size() * size);
  ANTDT_RETURN_IF_ERROR(collective_->allgather(std::as_bytes(std::span(own)),
                                               std::as_writable_bytes(std::span(all))));
  const auto group = worker::sharing::group_of(collective_->rank(), size, parts_.sharing->rules);
  in_group_ = collective_->rank() - group.begin;
  const char* const desk = &all[group.begin * own.size()];
  return share_link_->connect({desk, strnlen(desk, own.size())});
}

Input MemberDriver::perform(const worker::TakePart& effect) {
  const MonoTime began = tools_.clock.now();
  part_ = {};
  auto batch = tools_.prefetcher.next(effect.records, effect.patience);
  if (!batch) return worker::WorkFailed{batch.error()};
  if (batch->pieces.size() > kMostPieces) {
    return worker::WorkFailed{
        {ErrorKind::kUsage,
         fmt::format("its part of a step is in {} pieces of shards, and steps are shared with at "
                     "most {}: raise data.shard_batches, or remove control.share_steps",
                     batch->pieces.size(), kMostPieces)}};
  }
  part_ = std::move(*batch);
  worker::PartTaken taken{part_.status};
  if (part_.status == client::TakeStatus::kData) {
    tools_.injected.after_data(began, machine_.training().step.value);
    taken.records = static_cast<std::uint32_t>(part_.examples.count);
  }
  taken.data = tools_.clock.now() - began;
  return taken;
}

void MemberDriver::perform(const worker::OfferPart& effect) {
  if (effect.offer.records == 0) part_ = {};
  share_link_->offer(effect.offer, part_.pieces);
}

Input MemberDriver::perform(const worker::AskForRun& effect) {
  auto handed = share_link_->ask(effect.ask);
  if (!handed) return worker::group_failed(handed.error());
  handed_ = std::move(*handed);
  return worker::RunAnswered{handed_.answer};
}

Status MemberDriver::take_records_of(const worker::sharing::Run& run, data::Examples& examples) {
  if (run.owner == in_group_) {
    examples.append(part_.examples, run.from, run.to);
    return {};
  }
  std::vector<std::uint64_t> numbers;
  for (const wire::Piece& piece : handed_.records) data::add_record_numbers(piece, numbers);
  const std::uint64_t records = parts_.shared->records();
  const auto beyond = std::ranges::find_if(numbers, [&](auto number) { return number >= records; });
  if (beyond == numbers.end()) return parts_.shared->read(numbers, examples);
  return fail(ErrorKind::kCorrupt,
              "another member's part of a step has record {} of {}: install the same release of "
              "AntDT on all hosts",
              *beyond, records);
}

// Nothing is reduced before this member has asked for the last time, because it does not know
// which run will be its last one.
Input MemberDriver::perform(const worker::ComputeRun& effect) {
  const MonoTime began = tools_.clock.now();
  tools_.account.enter(TimeUse::kData);
  data::Examples examples;
  const Status taken = take_records_of(effect.run, examples);
  if (!taken) return worker::WorkFailed{taken.error()};
  tools_.account.enter(TimeUse::kCompute);
  worker::MicroBatchComputed done;
  done.status = client::TakeStatus::kData;
  done.data = tools_.clock.now() - began;
  const Status computed = compute(examples, false, effect.step, done);
  if (!computed) return worker::WorkFailed{computed.error()};
  if (!done.skipped.empty() && effect.run.owner != in_group_) {
    return worker::WorkFailed{
        {ErrorKind::kUsage,
         fmt::format("its program skipped a record of another member ({}): remove "
                     "control.share_steps, which is for programs that use every record",
                     done.skipped.front().reason)}};
  }
  return done;
}

}  // namespace antdt::trainer
