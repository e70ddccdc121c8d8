#include "jobd/disk/disks.h"

#include <fmt/format.h>

#include <utility>

namespace antdt::jobd {

Disks::Disks(EventLoop& loop, const Clock& clock, const std::string& run_dir,
             const std::string& state_dir, std::string journal)
    : loop_(loop),
      clock_(clock),
      run_files_("the filesystem of " + run_dir),
      state_files_("the filesystem of " + state_dir),
      journal_place_(std::move(journal)),
      records_(clock),
      checkpoints_(clock),
      history_(clock),
      journal_(clock, kSignOfLife) {
  for (DiskThread* disk : {&records_, &checkpoints_, &history_}) {
    loop_.watch_fd(disk->ready_fd(), [disk] { disk->deliver(); });
  }
}

Disks::~Disks() {
  for (DiskThread* disk : {&records_, &checkpoints_, &history_}) {
    loop_.unwatch_fd(disk->ready_fd());
  }
}

std::optional<Disks::Longest> Disks::longest() const {
  std::optional<Longest> longest;
  const auto look = [&](const std::optional<DiskThread::Present>& present,
                        const std::string& where) {
    if (!present || present->still < kPatience) return;
    if (!longest || present->still > longest->present.still) longest = {where, *present};
  };
  if (const auto call = journal_.present()) {
    look(DiskThread::Present{call->what, call->lasting, 0}, journal_place_);
  }
  look(history_.present(), state_files_);
  look(records_.present(), run_files_);
  look(checkpoints_.present(), run_files_);
  return longest;
}

std::string Disks::trouble() const {
  const auto stalled = longest();
  if (!stalled) return {};
  const auto& [what, still, waiting] = stalled->present;
  std::string text =
      fmt::format("{} has not answered for {:.0f} s: {}", stalled->where, to_seconds(still), what);
  if (waiting > 0) text += fmt::format(", and {} more wait behind it", waiting);
  return text;
}

std::optional<Disks::News> Disks::take_news() {
  const std::string text = trouble();
  if (!text.empty() && !stalled_) {
    stalled_ = {clock_.now(), longest()->where};
    return News{"disk-stalled",
                text +
                    "; the job goes on as far as it can without it, and by itself when it "
                    "answers"};
  }
  if (!text.empty() || !stalled_) return {};
  const Stalled over = *std::exchange(stalled_, {});
  return News{"disk-answers", fmt::format("{} answers again, {:.0f} s after it was said not to",
                                          over.where, to_seconds(clock_.now() - over.since))};
}

bool Disks::end(Duration patience) {
  bool ended = true;
  for (DiskThread* disk : {&records_, &checkpoints_, &history_}) {
    ended = disk->end(patience) && ended;
  }
  return ended;
}

}  // namespace antdt::jobd
