// An image of the ledger, from a snapshot or a checkpoint. An accepted image is the ledger's whole
// state, so the ledger must work whatever the members do next.
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ledger_data.h"

namespace {

using namespace antdt;
using namespace antdt::shard_server;

void go_on(Ledger ledger) {
  const std::map<WorkerId, Holder> holders = ledger.holders();
  ledger::Effects effects;
  std::uint64_t seq = UINT64_MAX;
  for (const auto& [worker, holder] : holders) {
    const Member member{worker, holder.attempt};
    wire::Fetch fetch;
    fetch.phase = ledger.phase().number;
    fetch.place = holder.end;
    fetch.want = 10;
    ledger.step(ledger::FetchRequested{member, holder.generation, seq, fetch}, MonoTime{}, effects);
    ledger.step(ledger::FetchRequested{member, holder.generation, holder.last.seq, fetch},
                MonoTime{}, effects);
    if (holder.outstanding() % 2 == 0) ledger.step(ledger::MemberLeft{member}, MonoTime{}, effects);
    ledger.step(ledger::MemberLost{member}, MonoTime{}, effects);
  }
  (void)ledger.committed_positions();
  ledger.step(ledger::PhaseOpened{ledger.phase().number + 1, PhaseKind::kEval, {}}, MonoTime{},
              effects);
}

void read(const LedgerConfig& config, std::string_view bytes) {
  const auto ledger = Ledger::restore(config, bytes);
  if (!ledger) return;
  const std::string image = ledger->image();
  const auto again = Ledger::restore(config, image);
  ANTDT_CHECK(again.has_value(), "an image is refused: {}", again.error().message);
  ANTDT_CHECK(again->image() == image, "another state");
  go_on(*ledger);
}

}  // namespace

ANTDT_FUZZ_TARGET(ledger_image)(const std::uint8_t* data, std::size_t size) {
  for (const LedgerConfig& config : fuzz::ledger_configs()) {
    read(config, fuzz::Input(data, size).rest());
  }
  return 0;
}
