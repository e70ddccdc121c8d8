// Whatever peers send to the ledger is never a defect, and the records that the ledger writes are
// accepted by a replay and by the accounts.
//
// An event is encoded as the record that stands for it; a Fetch as Answered, Skipped or Late, whose
// retry_ms is the number of wanted records.
#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/record_codec.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ledger_data.h"

namespace {

using namespace antdt;
using namespace antdt::shard_server;

// The ledger, and the ledger that a restart would make from its journal.
struct Pair {
  Ledger ledger;
  Ledger replayed;
  Accounts accounts;

  // What the job daemon says first.
  explicit Pair(const LedgerConfig& config) : ledger(config), replayed(config) {
    hear(ledger::JobDeclared{1, config.train.records, true});
    if (!config.train.pins.empty()) hear(ledger::DataPinned{config.train.pins});
  }

  void hear(const ledger::Input& event) {
    ledger::Effects effects;
    ledger.step(event, MonoTime{}, effects);
    for (const ledger::Effect& effect : effects) {
      const auto* persist = std::get_if<ledger::PersistRecord>(&effect);
      if (persist == nullptr) continue;
      const Status replay = replayed.replay(persist->bytes);
      ANTDT_CHECK(replay.has_value(), "replay refuses: {}", replay.error().message);
      const Status apply = accounts.apply(persist->bytes);
      ANTDT_CHECK(apply.has_value(), "the accounts refuse: {}", apply.error().message);
    }
  }

  void on(const ledger::FetchAnswered& said) { fetch(said, 0); }
  void on(const ledger::LateReturned& said) { fetch(said.answered, said.records); }
  void on(const ledger::RecallSettled& said) {
    ledger::RecallAnswered recalled{said.member, said.generation, said.number, said.phase,
                                    said.end};
    if (said.end % 2 == 1) recalled.records = said.end / 2;
    hear(recalled);
  }
  void fetch(const ledger::FetchAnswered& said, std::uint64_t late) {
    const auto holder = ledger.holders().find(said.member.worker);
    const Generation generation =
        holder == ledger.holders().end() ? Generation{} : holder->second.generation;
    wire::Fetch fetch{ledger.phase().number, said.place, said.retry_ms, said.partials, late};
    hear(ledger::FetchRequested{said.member, generation, said.seq, std::move(fetch)});
  }
  // Sent with a fetch that asks for no records.
  void on(const ledger::RecordsSkipped& said) {
    const auto holder = ledger.holders().find(said.member.worker);
    if (holder == ledger.holders().end()) return;
    wire::Fetch fetch{ledger.phase().number, holder->second.place, 0, {}};
    fetch.skipped = said.records;
    hear(ledger::FetchRequested{said.member, holder->second.generation, holder->second.last.seq + 1,
                                std::move(fetch)});
  }
  // Not from a peer: job.toml allows this many epochs, and the data have these records.
  void on(ledger::JobDeclared said) {
    said.epochs %= ledger::kMostEpochs + 1;
    said.records = fuzz::ledger_config().train.records;
    hear(said);
  }
  void on(const ledger::RecallIssued&) {}
  void on(const ledger::LedgerRewound&) {}
  template <class E>
  void on(const E& event) {
    hear(event);
  }
};

void play(const LedgerConfig& config, fuzz::Input input) {
  Pair pair(config);
  while (!input.empty()) {
    const auto said = decode_record(input.long_part());
    if (said) std::visit([&](const auto& s) { pair.on(s); }, *said);
  }
  const Ledger& ledger = pair.ledger;
  ANTDT_CHECK(ledger.committed() + ledger.outstanding() + ledger.ungranted() <= ledger.records(),
              "{} committed, {} held, {} free of {}", ledger.committed(), ledger.outstanding(),
              ledger.ungranted(), ledger.records());
  ANTDT_CHECK(ledger.image() == pair.replayed.image(), "a restart gives another state");
  for (const EpochAccount& epoch : pair.accounts.epochs()) {
    ANTDT_CHECK(epoch.repeated == 0, "{} records committed twice", epoch.repeated);
    ANTDT_CHECK(epoch.elsewhere == 0, "{} records left their domain", epoch.elsewhere);
  }
}

}  // namespace

ANTDT_FUZZ_TARGET(ledger_events)(const std::uint8_t* data, std::size_t size) {
  for (const LedgerConfig& config : fuzz::ledger_configs()) play(config, {data, size});
  return 0;
}
