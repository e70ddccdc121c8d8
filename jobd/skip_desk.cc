#include "jobd/skip_desk.h"

#include <memory>

#include "core/log/log.h"
#include "jobd/shell.h"

namespace antdt::jobd {

std::vector<wire::SkipRecords> SkipList::take_due(const shard_server::Phase& open,
                                                  Lineage lineage) {
  std::vector<wire::SkipRecords> due;
  if (open.number == 0 || open.kind != shard_server::PhaseKind::kTrain) return due;
  for (launcher::Skip& skip : skips_) {
    if (skip.epoch != open.epoch.value || skip.lineage >= lineage.value) continue;
    due.push_back({skip.from, skip.to, skip.reason, skip.who});
    skip.lineage = lineage.value;
    changed_ = true;
  }
  return due;
}

Status SkipDesk::read() {
  ANTDT_TRY(std::vector<launcher::Skip> kept, launcher::read_skips(shell_.options.run_dir));
  skips_ = SkipList(std::move(kept));
  return {};
}

void SkipDesk::add(Epoch epoch, const wire::SkipRecords& order) {
  skips_.add({epoch.value, order.from, order.to, order.reason, order.who, 0});
}

void SkipDesk::declare() {
  const auto due =
      skips_.take_due(shell_.machine.ledger().phase(), shell_.machine.membership().lineage());
  for (const wire::SkipRecords& order : due) shell_.feed(ctl::job::SkipOrdered{order});
}

Outgoing SkipDesk::take_answer() { return shell_.outbox.take_last(); }

void SkipDesk::keep() {
  auto answers = std::make_shared<std::vector<Outgoing>>(std::exchange(answers_, {}));
  const auto send = [this, answers] {
    for (Outgoing& answer : *answers) shell_.outbox.add(std::move(answer));
  };
  if (!skips_.take_changed()) return send();
  shell_.disks.records().run("writing skips.json",
                             [send, skips = skips_.all(), run_dir = shell_.options.run_dir] {
                               const Status kept = launcher::write_skips(run_dir, skips);
                               return [send, kept] {
                                 if (!kept) log_warn("{}", kept.error().message);
                                 send();
                               };
                             });
}

}  // namespace antdt::jobd
