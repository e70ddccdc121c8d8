// The cost of one step of the ledger without sockets: a fetch that commits the last grant and asks
// for the next, as the job daemon would handle it.
//
//   antdt-ledger-bench [DIRECTORY for the journal, default .]
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/wire/packet.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/journal/journal.h"
#include "shard_server/ledger/ledger.h"

namespace {

using namespace antdt;
using namespace antdt::shard_server;

constexpr std::uint32_t kClients = 64;
constexpr std::uint64_t kShard = 1024;
constexpr std::uint64_t kShards = 1'000'000'000;

struct Setting {
  const char* name;
  std::uint64_t shards_per_fetch;
  bool encode;                        // decode the request and encode the reply
  bool accounts;                      // keep the audit's view
  std::uint64_t requests_per_commit;  // 0: no journal
};

struct Cost {
  double us_per_fetch = 0;
  std::size_t journal_bytes = 0;
};

class Bench {
 public:
  Bench(const Setting& setting, const std::string& journal_path)
      : setting_(setting), ledger_(config()) {
    if (setting.requests_per_commit > 0) {
      JournalContent content;
      auto opened = Journal::open(journal_path, content);
      if (!opened) throw std::runtime_error(opened.error().message);
      journal_.emplace(std::move(*opened));
    }
    handle(ledger::JobDeclared{1, config().train.records, true});
    for (std::uint32_t i = 0; i < kClients; ++i) {
      handle(ledger::MemberAdmitted{{{'w', i}, Attempt{1}}, {}});
    }
    handle(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  }

  Cost run(std::uint64_t rounds) {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t want = setting_.shards_per_fetch * kShard;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < kClients; ++i) {
        const std::uint64_t place = round == 0 ? 0 : (round - 1) * want + want;
        ledger::FetchRequested fetch{{{'w', i}, Attempt{1}}, {}, round + 1, {1, place, want, {}}};
        if (setting_.encode) {
          fetch.request = *wire::decode<wire::Fetch>(wire::encode(fetch.request));
        }
        handle(std::move(fetch));
      }
    }
    commit();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return {took.count() / static_cast<double>(rounds * kClients), bytes_ / (rounds * kClients)};
  }

 private:
  static LedgerConfig config() {
    LedgerConfig config;
    config.train = {kShards * kShard, kShard, Shuffle::kFull, 7};
    return config;
  }

  void handle(ledger::Input event) {
    effects_.clear();
    ledger_.step(event, {}, effects_);
    for (const ledger::Effect& effect : effects_) {
      if (const auto* persist = std::get_if<ledger::PersistRecord>(&effect)) {
        bytes_ += persist->bytes.size();
        if (setting_.accounts && !accounts_.apply(persist->bytes)) throw std::logic_error("record");
        if (journal_) journal_->append(kLedgerKind, persist->bytes);
      } else if (const auto* reply = std::get_if<ledger::SendGrants>(&effect)) {
        if (setting_.encode) sent_ += wire::make_packet(reply->grants).body.size();
      }
    }
    if (journal_ && ++waiting_ == setting_.requests_per_commit) commit();
  }

  void commit() {
    waiting_ = 0;
    if (!journal_) return;
    if (auto done = journal_->commit(); !done) throw std::runtime_error(done.error().message);
    if (!journal_->wants_snapshot()) return;
    auto done = journal_->snapshot({{std::string(kLedgerKind), ledger_.image()},
                                    {std::string(kAccountsKind), accounts_.image()}});
    if (!done) throw std::runtime_error(done.error().message);
  }

  Setting setting_;
  Ledger ledger_;
  Accounts accounts_;
  std::optional<Journal> journal_;
  ledger::Effects effects_;
  std::uint64_t waiting_ = 0;
  std::size_t bytes_ = 0;
  std::size_t sent_ = 0;
};

void restart_time(const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  JournalContent content;
  auto journal = Journal::open(path, content);
  if (!journal) throw std::runtime_error(journal.error().message);
  LedgerConfig config;
  config.train = {kShards * kShard, kShard, Shuffle::kFull, 7};
  Ledger ledger(config);
  Accounts accounts;
  for (const JournalEntry& section : content.snapshot) {
    if (section.kind == kLedgerKind) ledger = *Ledger::restore(config, section.bytes);
    if (section.kind == kAccountsKind) accounts = *Accounts::restore(section.bytes);
  }
  for (const JournalEntry& entry : content.records) {
    if (!ledger.replay(entry.bytes) || !accounts.apply(entry.bytes))
      throw std::logic_error("replay");
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  fmt::print("restart: {} records replayed in {:.1f} ms, {} shards committed, image {} bytes\n",
             content.records.size(), took.count(), ledger.committed() / kShard,
             ledger.image().size());
}

int run(const std::string& directory) {
  const std::string path = directory + "/ledger-bench.db";
  const Setting settings[] = {
      {"1 shard, step only", 1, false, false, 0},
      {"1 shard, messages encoded", 1, true, false, 0},
      {"1 shard, and accounts", 1, true, true, 0},
      {"1 shard, and journal per 32", 1, true, true, 32},
      {"64 shards, step only", 64, false, false, 0},
      {"64 shards, messages encoded", 64, true, false, 0},
      {"64 shards, and accounts", 64, true, true, 0},
      {"64 shards, and journal per 32", 64, true, true, 32},
  };
  fmt::print("{:<32} {:>10} {:>14} {:>14} {:>9}\n", "a fetch that commits", "us", "fetches/s",
             "shards/s", "bytes");
  for (const Setting& setting : settings) {
    for (const char* suffix : {"", "-wal", "-shm", ".ballast"}) {
      std::filesystem::remove(path + suffix);
    }
    const Cost cost = Bench(setting, path).run(setting.shards_per_fetch == 1 ? 6000 : 600);
    const double per_second = 1e6 / cost.us_per_fetch;
    fmt::print("{:<32} {:>10.2f} {:>14.0f} {:>14.0f} {:>9}\n", setting.name, cost.us_per_fetch,
               per_second, per_second * static_cast<double>(setting.shards_per_fetch),
               cost.journal_bytes);
  }
  restart_time(path);
  for (const char* suffix : {"", "-wal", "-shm", ".ballast"}) {
    std::filesystem::remove(path + suffix);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : ".");
  } catch (const std::exception& error) {
    fmt::print(stderr, "antdt-ledger-bench: {}\n", error.what());
    return 1;
  }
}
