// The training state of a member of a collective: read, compared with the others', passed on,
// saved.
#include "trainer/loop/member_driver.h"
#include "trainer/loop/state/healing.h"

namespace antdt::trainer {

using worker::Input;

namespace {

worker::StateUnreadable::Cause cause_of(ErrorKind kind) {
  using Cause = worker::StateUnreadable::Cause;
  if (kind == ErrorKind::kAborted) return Cause::kInterrupted;
  return kind == ErrorKind::kIo ? Cause::kDisk : Cause::kContent;
}

}  // namespace

// Reads part by part into place. The generation may end meanwhile; then nobody waits for this any
// more.
Input MemberDriver::perform(const worker::ReadState& effect) {
  std::uint64_t so_far = 0, of_all = 0;
  const auto say = [&] {
    tools_.client.set_io({"reading the checkpoint", effect.directory, so_far, of_all});
  };
  const auto moved = [&](std::uint64_t bytes) {
    so_far += bytes;
    say();
    return !tools_.guard.over() && !tools_.stop && !tools_.client.leave_requested();
  };
  const auto read = [&]() -> Result<Step> {
    say();
    ANTDT_TRY(auto files, CheckpointReader::open(effect.directory, moved));
    of_all = files.total_bytes();
    return tools_.engine.load(files);
  };
  const auto step = read();
  tools_.client.set_io({});
  if (!step) {
    return worker::StateUnreadable{step.error().message, cause_of(step.error().kind)};
  }
  return worker::StateRead{*step};
}

Input MemberDriver::perform(const worker::CompareStates& effect) {
  const CountedAs healing(collective_->ledger(), Traffic::kHealing);
  auto slots = compare_states(*collective_, tools_.engine, effect);
  if (!slots) return worker::group_failed(slots.error());
  return worker::StatesCompared{std::move(*slots)};
}

Input MemberDriver::perform(const worker::Consolidate& effect) {
  const CountedAs parameters(collective_->ledger(), Traffic::kParameters);
  // Whole replicas move, which may take longer than the others are patient.
  std::uint64_t so_far = 0;
  const ReceivedTold told(collective_->ledger(), [&](std::size_t bytes) {
    so_far += bytes;
    if (!writer_.busy()) tools_.client.set_io({"receiving the state", {}, so_far, 0});
  });
  const auto consolidate = [&]() -> Status {
    if (!effect.domains.empty()) {
      ANTDT_TRY(const DomainLinks links, links_of(effect.domains));
      return tools_.engine.consolidate_domains(links);
    }
    ANTDT_TRY(Collective* const holders, groups_.of(*collective_, effect.holders));
    return tools_.engine.consolidate(*holders);
  };
  const Status done = consolidate();
  if (so_far > 0 && !writer_.busy()) tools_.client.set_io({});
  if (!done) return worker::group_failed(done.error());
  tools_.client.set_updates(tools_.engine.update_sums());
  return worker::Consolidated{};
}

Input MemberDriver::perform(const worker::PassState& effect) {
  const CountedAs healing(collective_->ledger(), Traffic::kHealing);
  auto meta = pass_state(*collective_, tools_.engine, effect,
                         [this](std::uint64_t bytes, std::uint64_t of_all) {
                           tools_.client.set_io({"receiving the state", {}, bytes, of_all});
                         });
  if (!meta) return worker::group_failed(meta.error());
  return worker::StatePassed{std::move(*meta)};
}

Input MemberDriver::perform(const worker::HashState& effect) {
  const auto hash =
      hash_of_state(tools_.engine, effect, [this](std::uint64_t bytes, std::uint64_t of_all) {
        if (!writer_.busy()) tools_.client.set_io({"comparing the state", {}, bytes, of_all});
      });
  if (!writer_.busy()) tools_.client.set_io({});
  if (!hash) return worker::group_failed(hash.error());
  if (!effect.settles) return worker::StateHashed{*hash};
  const CountedAs healing(collective_->ledger(), Traffic::kHealing);
  const auto settled =
      settle_differences(*collective_, tools_.engine, effect, *hash,
                         [this](std::uint64_t bytes, std::uint64_t of_all) {
                           if (writer_.busy()) return;
                           tools_.client.set_io({"receiving the state", {}, bytes, of_all});
                         });
  if (!writer_.busy()) tools_.client.set_io({});
  if (!settled) return worker::group_failed(settled.error());
  return worker::StateHashed{settled->hash, settled->replaced};
}

// The driver reports an ordered checkpoint itself, because a step may take longer than the others
// should wait for it.
void MemberDriver::perform(worker::Save& effect) {
  const bool is_told = effect.kind == worker::Save::Kind::kOrdered;
  if (parts_.rows != nullptr && !save_rows(effect)) return;
  if (effect.apart) effect.about.directory = writer_.directory_apart(effect.about);
  writer_.begin(tools_.engine, std::move(effect.about),
                [this, is_told](wire::CheckpointWritten written) {
                  if (is_told) tools_.client.checkpoint_written(written);
                  saves_.put(std::move(written));
                });
}

void MemberDriver::perform(const worker::GiveUpSaving& effect) { writer_.give_up(effect.reason); }

}  // namespace antdt::trainer
