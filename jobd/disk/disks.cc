#include "jobd/disk/disks.h"

#include <fmt/format.h>

#include <utility>

namespace antdt::jobd {

Disks::Disks(EventLoop& loop, const Clock& clock, std::string run_dir, std::string state_dir)
    : loop_(loop),
      clock_(clock),
      run_dir_(std::move(run_dir)),
      state_dir_(std::move(state_dir)),
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
                        const std::string& directory) {
    if (!present || present->still < kPatience) return;
    if (!longest || present->still > longest->present.still) longest = {directory, *present};
  };
  if (const auto call = journal_.present()) {
    look(DiskThread::Present{call->what, call->lasting, 0}, state_dir_);
  }
  look(history_.present(), state_dir_);
  look(records_.present(), run_dir_);
  look(checkpoints_.present(), run_dir_);
  return longest;
}

std::string Disks::trouble() const {
  const auto stalled = longest();
  if (!stalled) return {};
  const auto& [what, still, waiting] = stalled->present;
  std::string text = fmt::format("the filesystem of {} has not answered for {:.0f} s: {}",
                                 stalled->directory, to_seconds(still), what);
  if (waiting > 0) text += fmt::format(", and {} more wait behind it", waiting);
  return text;
}

std::optional<Disks::News> Disks::take_news() {
  const std::string text = trouble();
  if (!text.empty() && !stalled_since_) {
    stalled_since_ = clock_.now();
    return News{"disk-stalled",
                text +
                    "; the job goes on as far as it can without it, and by itself when it "
                    "answers"};
  }
  if (!text.empty() || !stalled_since_) return {};
  const Duration said = clock_.now() - *std::exchange(stalled_since_, {});
  return News{"disk-answers", fmt::format("the filesystem answers again, {:.0f} s after it was "
                                          "said not to",
                                          to_seconds(said))};
}

bool Disks::end(Duration patience) {
  bool ended = true;
  for (DiskThread* disk : {&records_, &checkpoints_, &history_}) {
    ended = disk->end(patience) && ended;
  }
  return ended;
}

}  // namespace antdt::jobd
