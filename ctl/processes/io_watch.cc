#include "ctl/processes/io_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace antdt::ctl {
namespace {

// The speed is measured from a mark of five to ten seconds ago.
constexpr Duration kMarkEvery = std::chrono::seconds(5);

bool holds_others_up(const IoProgress& io) {
  return io.what == kReadsCheckpoint || io.what == kReceivesState || io.what == kComparesState;
}

double in_units(std::uint64_t bytes, double unit) { return static_cast<double>(bytes) / unit; }

// "3.1 of 12.4 GB"
std::string bytes_text(const IoProgress& io) {
  const bool large = std::max(io.done_bytes, io.total_bytes) >= 1'000'000'000;
  const double unit = large ? 1e9 : 1e6;
  const std::string_view name = large ? "GB" : "MB";
  if (io.total_bytes == 0) return fmt::format("{:.1f} {}", in_units(io.done_bytes, unit), name);
  return fmt::format("{:.1f} of {:.1f} {}", in_units(io.done_bytes, unit),
                     in_units(io.total_bytes, unit), name);
}

}  // namespace

bool opens_data(std::string_view what) {
  return what == kOpensData || what == kIndexesData || what == kChecksIndex ||
         what == kWaitsForIndex;
}

std::string io_text(const IoProgress& io) {
  if (io.what.empty()) return "";
  std::string text = fmt::format("{}: {}", io.what, bytes_text(io));
  if (io.bytes_per_second > 0) text += fmt::format(", {:.1f} MB/s", io.bytes_per_second / 1e6);
  return text;
}

IoMoved IoWatch::heard(Member member, const wire::Report& report, MonoTime now) {
  if (report.io.empty()) {
    at_.erase(member);
    return IoMoved::kNothing;
  }
  At& at = at_[member];
  IoProgress said{report.io, report.io_path, report.io_done_bytes, report.io_total_bytes, 0};
  const bool other = at.io.what != said.what || at.io.path != said.path ||
                     at.io.total_bytes != said.total_bytes || said.done_bytes < at.io.done_bytes;
  const bool moved = other || said.done_bytes != at.io.done_bytes;
  if (other) at.before = at.mark = {now, said.done_bytes};
  if (moved) at.moved = now;
  if (now - at.mark.at >= kMarkEvery) {
    at.before = at.mark;
    at.mark = {now, said.done_bytes};
  }
  at.io = std::move(said);
  const double seconds = to_seconds(now - at.before.at);
  if (seconds > 0) {
    at.io.bytes_per_second = in_units(at.io.done_bytes - at.before.bytes, seconds);
  }
  if (!moved) return IoMoved::kNothing;
  if (opens_data(at.io.what)) return IoMoved::kOpened;
  return holds_others_up(at.io) ? IoMoved::kHeldUpFor : IoMoved::kWritten;
}

void IoWatch::excuse(Member member, MonoTime now) {
  if (const auto found = at_.find(member); found != at_.end()) found->second.moved = now;
}

IoProgress IoWatch::of(Member member) const {
  const auto found = at_.find(member);
  return found == at_.end() ? IoProgress{} : found->second.io;
}

bool IoWatch::holds_up(Member member) const {
  const auto found = at_.find(member);
  return found != at_.end() && holds_others_up(found->second.io);
}

bool IoWatch::reads(Member member) const { return of(member).what == kReadsCheckpoint; }

bool IoWatch::indexes(Member member) const {
  const std::string what = of(member).what;
  return what != kWaitsForIndex && opens_data(what);
}

bool IoWatch::some_move(MonoTime now) const {
  for (const auto& [member, at] : at_) {
    if (holds_others_up(at.io) && now - at.moved < patience_) return true;
  }
  return false;
}

std::string IoWatch::still_text(const At& at) const {
  const bool on_disk = at.io.what == kReadsCheckpoint || opens_data(at.io.what);
  return fmt::format("{} {} stands still at {} for {:.0f} s{}", at.io.what, at.io.path,
                     bytes_text(at.io), to_seconds(patience_),
                     on_disk ? ": look at the disk there" : "");
}

std::string IoWatch::stands_still(Member member, MonoTime now) const {
  const auto found = at_.find(member);
  if (found == at_.end()) return "";
  const IoProgress& io = found->second.io;
  if (!holds_others_up(io) && !opens_data(io.what)) return "";
  return now - found->second.moved < patience_ ? "" : still_text(found->second);
}

std::map<Member, std::string> IoWatch::all_that_stand_still(MonoTime now) const {
  std::map<Member, std::string> all;
  for (const auto& [member, at] : at_) {
    if (at.io.what == kReceivesState) continue;
    if (holds_others_up(at.io) && now - at.moved >= patience_) all[member] = still_text(at);
  }
  return all;
}

}  // namespace antdt::ctl
