#include "shard_server/accounts/audit.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "shard_server/ledger/ledger.h"

namespace antdt::shard_server {
namespace {

int exit_code_of(const AuditReport& report) {
  for (const EpochAccount& epoch : report.epochs) {
    if (!is_kept(report.delivery, epoch.repeated, epoch.lost) || epoch.elsewhere > 0) return 1;
  }
  if (!report.finished) return 5;
  return report.uses_ledger ? 0 : 6;
}

std::string_view verdict_if_kept(Delivery delivery) {
  switch (delivery) {
    case Delivery::kExactlyOnce:
      return "kept: every record was trained exactly once in each epoch, or skipped as declared";
    case Delivery::kAtLeastOnce:
      return "kept: every record was trained at least once in each epoch, or skipped as declared; "
             "those that are repeated may count more than once in a part of the model";
    case Delivery::kAtMostOnce:
      return "kept: every record was trained at most once in each epoch; those that are lost may "
             "be missing in a part of the model";
  }
  return "";
}

std::string_view verdict_if_broken(Delivery delivery) {
  switch (delivery) {
    case Delivery::kExactlyOnce:
      return "broken: records were repeated or lost";
    case Delivery::kAtLeastOnce:
      return "broken: records were lost, and the promise is at-least-once";
    case Delivery::kAtMostOnce:
      return "broken: records were repeated, and the promise is at-most-once";
  }
  return "";
}

bool left_their_domain(const AuditReport& report) {
  return std::ranges::any_of(report.epochs,
                             [](const EpochAccount& epoch) { return epoch.elsewhere > 0; });
}

// People count epochs from 1.
std::uint64_t shown(const EpochAccount& epoch) { return std::uint64_t{epoch.epoch} + 1; }

// For each domain how many of its records were trained, all of them by its own workers unless the
// last line says otherwise.
std::string domain_lines(const EpochAccount& epoch) {
  std::string lines;
  const std::uint64_t number = shown(epoch);
  for (const EpochAccount::Domain& domain : epoch.domains) {
    lines += fmt::format("epoch {}: domain {}: {} of its {} records trained\n", number, domain.name,
                         domain.trained, domain.records);
  }
  if (epoch.domains.empty()) return lines;
  return lines + (epoch.elsewhere == 0
                      ? fmt::format("epoch {}: each by a worker of its domain\n", number)
                      : fmt::format("epoch {}: {} were trained by a worker of another domain\n",
                                    number, epoch.elsewhere));
}

std::string_view verdict(const AuditReport& report) {
  switch (report.exit_code) {
    case 0:
      return verdict_if_kept(report.delivery);
    case 1:
      if (left_their_domain(report)) {
        return "broken: records were trained in another domain than the one they are pinned to";
      }
      return verdict_if_broken(report.delivery);
    case 5:
      return "not finished";
    default:
      return "unaccounted: the program read its data by itself";
  }
}

std::uint64_t trained(const std::vector<EpochAccount>& epochs) {
  std::uint64_t records = 0;
  for (const EpochAccount& epoch : epochs) records += epoch.once + epoch.repeated;
  return records;
}

std::string ahead_line(const AuditReport::Ahead& ahead) {
  return fmt::format(
      "checkpoint {} contains {} records more than the journal tells: the run ended before the "
      "journal heard of them, or had room for them. antdt run --resume goes on from the "
      "checkpoint\n",
      ahead.checkpoint, ahead.records);
}

}  // namespace

AuditReport audit(const Accounts& accounts) {
  AuditReport report;
  report.epochs = accounts.epochs();
  report.finished = accounts.finished();
  report.uses_ledger = accounts.uses_ledger();
  report.delivery = accounts.delivery();
  report.exit_code = exit_code_of(report);
  return report;
}

void compare(AuditReport& report, const std::string& checkpoint, const Accounts& in_checkpoint) {
  const std::uint64_t in_journal = trained(report.epochs);
  const std::uint64_t in_model = trained(in_checkpoint.epochs());
  if (in_model > in_journal) report.ahead = {checkpoint, in_model - in_journal};
}

Result<Accounts> accounts_of(const JournalContent& content, const std::string& name) {
  Accounts accounts;
  for (const JournalEntry& section : content.snapshot) {
    if (section.kind != kAccountsKind) continue;
    ANTDT_TRY(accounts, Accounts::restore(section.bytes));
  }
  for (const JournalEntry& entry : content.records) {
    if (entry.kind != kLedgerKind) continue;
    if (auto applied = accounts.apply(entry.bytes); !applied) {
      return fail(applied.error().kind, "{}: {}", name, applied.error().message);
    }
  }
  return accounts;
}

std::string audit_table(const AuditReport& report) {
  constexpr std::string_view kRow = "{:>5}  {:>12}  {:>12}  {:>9}  {:>9}  {:>9}  {:>11}  {:>12}\n";
  std::string table = fmt::format(kRow, "epoch", "records", "once", "repeated", "lost", "skipped",
                                  "unaccounted", "remaining");
  for (const EpochAccount& e : report.epochs) {
    table += fmt::format(kRow, shown(e), e.records, e.once, e.repeated, e.lost, e.skipped,
                         e.unaccounted, e.remaining);
  }
  for (const EpochAccount& e : report.epochs) {
    for (const EpochAccount::Reason& reason : e.skipped_by_program) {
      table += fmt::format("epoch {}: the program skipped {}: {}\n", shown(e), reason.records,
                           reason.text);
    }
    table += domain_lines(e);
  }
  if (report.ahead) table += ahead_line(*report.ahead);
  if (report.rows_put_aside > 0) {
    table += fmt::format("malformed rows of the data, which are no records: {}\n",
                         report.rows_put_aside);
  }
  return table + fmt::format("{}\n", verdict(report));
}

std::string audit_json(const AuditReport& report) {
  nlohmann::ordered_json epochs = nlohmann::ordered_json::array();
  for (const EpochAccount& e : report.epochs) {
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const EpochAccount::Reason& reason : e.skipped_by_program) {
      reasons.push_back({{"reason", reason.text}, {"records", reason.records}});
    }
    epochs.push_back({{"epoch", e.epoch},
                      {"records", e.records},
                      {"once", e.once},
                      {"repeated", e.repeated},
                      {"lost", e.lost},
                      {"skipped", e.skipped},
                      {"unaccounted", e.unaccounted},
                      {"remaining", e.remaining},
                      {"skipped_by_program", std::move(reasons)}});
    if (e.domains.empty()) continue;
    nlohmann::ordered_json domains = nlohmann::ordered_json::array();
    for (const EpochAccount::Domain& domain : e.domains) {
      domains.push_back(
          {{"name", domain.name}, {"records", domain.records}, {"trained", domain.trained}});
    }
    epochs.back()["domains"] = std::move(domains);
    epochs.back()["elsewhere"] = e.elsewhere;
  }
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"delivery", to_string(report.delivery)},
                                 {"finished", report.finished},
                                 {"exit_code", report.exit_code},
                                 {"epochs", std::move(epochs)}};
  if (report.ahead) {
    json["checkpoint_ahead"] = {{"name", report.ahead->checkpoint},
                                {"records", report.ahead->records}};
  }
  if (report.rows_put_aside > 0) json["rows_put_aside"] = report.rows_put_aside;
  // An image on a damaged disk may have any bytes for a reason.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace antdt::shard_server
