#include "jobd/skip_desk.h"

#include <memory>

#include "core/log/log.h"
#include "jobd/shell.h"
#include "launcher/start/skips.h"

namespace antdt::jobd {

namespace {

std::vector<launcher::Skip> for_file(const std::vector<ctl::job::Skip>& skips) {
  std::vector<launcher::Skip> all;
  for (const ctl::job::Skip& s : skips) {
    all.push_back(
        {s.epoch.value, s.order.from, s.order.to, s.order.reason, s.order.who, s.lineage.value});
  }
  return all;
}

}  // namespace

Status SkipDesk::read(const shard_server::JournalContent& journal) {
  ANTDT_TRY(const std::vector<launcher::Skip> kept, launcher::read_skips(shell_.options.run_dir));
  std::vector<ctl::job::Skip> skips;
  for (const launcher::Skip& s : kept) {
    skips.push_back({Epoch{s.epoch}, {s.from, s.to, s.reason, s.who}, Lineage{s.lineage}});
  }
  skips_ = ctl::job::SkipList(std::move(skips));
  return skips_.learn(journal);
}

void SkipDesk::add_section(std::vector<shard_server::JournalEntry>& sections) const {
  std::string record = skips_.record();
  if (!record.empty()) sections.push_back({std::string(ctl::job::kSkipRecord), std::move(record)});
}

void SkipDesk::declare() {
  const auto due =
      skips_.take_due(shell_.machine.ledger().phase(), shell_.machine.membership().lineage());
  for (const ctl::job::Skip& skip : due) shell_.feed(ctl::job::SkipOrdered{skip.order});
}

void SkipDesk::answer_when_kept() { answers_.push_back(shell_.outbox.take_last()); }

void SkipDesk::keep() {
  auto answers = std::make_shared<std::vector<Outgoing>>(std::exchange(answers_, {}));
  const auto send = [this, answers] {
    for (Outgoing& answer : *answers) shell_.outbox.add(std::move(answer));
  };
  if (!skips_.take_changed()) return send();
  shell_.disks.records().run("writing skips.json", [send, skips = for_file(skips_.all()),
                                                    run_dir = shell_.options.run_dir] {
    const Status kept = launcher::write_skips(run_dir, skips);
    return [send, kept] {
      if (!kept) log_warn("{}", kept.error().message);
      send();
    };
  });
}

}  // namespace antdt::jobd
