#include "trainer/loop/accounts/time_account.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace antdt::trainer {

TimeAccount::TimeAccount(const Clock& clock, MonoTime began)
    : clock_(clock), began_(began), since_(began) {}

TimeUse TimeAccount::enter(TimeUse use) {
  const MonoTime now = clock_.now();
  spent_[static_cast<std::size_t>(use_)] += now - since_;
  since_ = now;
  if (listener_) listener_(use);
  return std::exchange(use_, use);
}

void TimeAccount::set_listener(std::function<void(TimeUse)> listener) {
  listener_ = std::move(listener);
  if (listener_) listener_(use_);
}

Duration TimeAccount::spent(TimeUse use) const {
  const Duration running = use == use_ ? clock_.now() - since_ : Duration{};
  return spent_[static_cast<std::size_t>(use)] + running;
}

Duration TimeAccount::total() const { return clock_.now() - began_; }

wire::TimeAccount TimeAccount::seconds() const {
  wire::TimeAccount out;
  out.compute = to_seconds(spent(TimeUse::kCompute));
  out.data = to_seconds(spent(TimeUse::kData));
  out.collective_wait = to_seconds(spent(TimeUse::kCollectiveWait));
  out.shard_wait = to_seconds(spent(TimeUse::kShardWait));
  out.reconfigure = to_seconds(spent(TimeUse::kReconfigure));
  out.checkpoint = to_seconds(spent(TimeUse::kCheckpoint));
  out.startup = to_seconds(spent(TimeUse::kStartup));
  out.other = to_seconds(spent(TimeUse::kOther));
  return out;
}

MonoTime process_start(MonoTime now) {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return now;
  // The second field is the program's name in parentheses and may contain spaces; starttime is the
  // 20th after it, in clock ticks since boot.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return now;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  timespec boot{};
  if (!fields || ticks_per_s <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return now;
  const Duration since_boot = std::chrono::seconds(boot.tv_sec) + Duration(boot.tv_nsec);
  const Duration started =
      from_seconds(std::strtod(field.c_str(), nullptr) / static_cast<double>(ticks_per_s));
  return started <= since_boot ? now - (since_boot - started) : now;
}

}  // namespace antdt::trainer
