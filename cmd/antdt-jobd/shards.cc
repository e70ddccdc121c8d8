#include "cmd/antdt-jobd/shards.h"

#include <nlohmann/json.hpp>

#include "cmd/antdt-jobd/job_image.h"
#include "core/check.h"
#include "core/log.h"

namespace antdt::jobd {

using shard_server::Accounts;
using shard_server::Journal;
using shard_server::JournalContent;
using shard_server::JournalEntry;
using shard_server::Ledger;
using shard_server::LedgerConfig;

Shards::Shards(Ledger ledger, Accounts accounts, Journal journal, std::string image)
    : ledger_(std::move(ledger)),
      accounts_(std::move(accounts)),
      journal_(std::move(journal)),
      image_(std::move(image)) {}

Result<Shards> Shards::open(const std::string& state_dir, shard_server::DataSet train,
                            shard_server::DataSet eval) {
  JournalContent content;
  ANTDT_TRY(Journal journal, Journal::open(state_dir + "/state.db", content));
  LedgerConfig config;
  config.train = train;
  config.eval = eval;
  Ledger ledger(config);
  Accounts accounts;
  std::string image;
  for (const JournalEntry& entry : content.snapshot) {
    if (entry.kind == shard_server::kLedgerKind) {
      ANTDT_TRY(ledger, Ledger::restore(config, entry.bytes));
    } else if (entry.kind == shard_server::kAccountsKind) {
      ANTDT_TRY(accounts, Accounts::restore(entry.bytes));
    } else if (entry.kind == kImageRecord) {
      image = entry.bytes;
    }
  }
  for (JournalEntry& entry : content.records) {
    if (entry.kind == shard_server::kLedgerKind) {
      ANTDT_RETURN_IF_ERROR(ledger.replay(entry.bytes));
      ANTDT_RETURN_IF_ERROR(accounts.apply(entry.bytes));
    } else if (entry.kind == kImageRecord) {
      image = std::move(entry.bytes);
    }
  }
  return Shards(std::move(ledger), std::move(accounts), std::move(journal), std::move(image));
}

void Shards::journal_image(std::string bytes) {
  image_ = std::move(bytes);
  journal_.append(kImageRecord, image_);
}

ShardOutput Shards::step(const shard_server::Event& event, MonoTime now) {
  ShardOutput output;
  step(event, now, output);
  return output;
}

void Shards::step(const shard_server::Event& event, MonoTime now, ShardOutput& output) {
  using namespace shard_server::effect;
  effects_.clear();
  ledger_.step(event, now, effects_);
  for (shard_server::Effect& effect : effects_) {
    if (auto* persist = std::get_if<Persist>(&effect)) {
      journal_.append(shard_server::kLedgerKind, persist->bytes);
      const Status counted = accounts_.apply(persist->bytes);
      ANTDT_CHECK(counted.has_value(), "the accounts refuse what the ledger decided: {}",
                  counted.error().message);
    } else if (auto* reply = std::get_if<Reply>(&effect)) {
      output.replies.push_back(
          {reply->member, reply->generation, reply->seq, std::move(reply->grants)});
    } else if (auto* refuse = std::get_if<Refuse>(&effect)) {
      output.refusals.push_back({refuse->member, refuse->seq, std::move(refuse->refused)});
    } else if (auto* recall = std::get_if<SendRecall>(&effect)) {
      output.recalls.push_back(
          {recall->member, recall->generation, recall->number, recall->recall});
    } else if (auto* complete = std::get_if<PhaseComplete>(&effect)) {
      output.drained_phase = complete->phase;
    } else if (auto* returned = std::get_if<Returned>(&effect)) {
      output.notes.push_back(fmt::format("{} (attempt {}) gave back {} records of epoch {}",
                                         returned->member.worker, returned->member.attempt,
                                         returned->range.at.to - returned->range.at.from,
                                         returned->epoch.value + 1));
    } else if (auto* stop = std::get_if<StopJob>(&effect)) {
      output.stop_reason = std::move(stop->reason);
    }
  }
}

Status Shards::commit() {
  ANTDT_RETURN_IF_ERROR(journal_.commit());
  if (!journal_.wants_snapshot()) return {};
  std::vector<JournalEntry> sections{{std::string(shard_server::kLedgerKind), ledger_.image()},
                                     {std::string(shard_server::kAccountsKind), accounts_.image()}};
  if (!image_.empty()) sections.push_back({std::string(kImageRecord), image_});
  return journal_.snapshot(sections);
}

Totals Shards::totals() const {
  Totals totals;
  for (const shard_server::EpochAccount& e : accounts_.epochs()) {
    totals.once += e.once;
    totals.repeated += e.repeated;
    totals.lost += e.lost;
    totals.skipped += e.skipped;
    totals.unaccounted += e.unaccounted;
  }
  return totals;
}

Result<std::string> Shards::checkpoint_json(const std::vector<wire::MemberPlace>& places) const {
  ANTDT_TRY(const std::string image, ledger_.image_at(places));
  const shard_server::Phase& phase = ledger_.phase();
  // The images are binary; base-16 keeps the file readable by any JSON reader.
  const auto hex = [](std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  };
  nlohmann::json out{{"schema", 1},
                     {"phase", phase.number},
                     {"epoch", phase.epoch.value},
                     {"ledger_image", hex(image)},
                     {"accounts_image", hex(accounts_.image())}};
  return out.dump(1) + "\n";
}

}  // namespace antdt::jobd
