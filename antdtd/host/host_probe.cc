#include "antdtd/host/host_probe.h"

#include <array>
#include <charconv>

namespace antdt::antdtd {
namespace {

// Removes a number, with the blanks before it, from the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::size_t digits = text.find_first_not_of(' ');
  if (digits == std::string_view::npos) return std::nullopt;
  text.remove_prefix(digits);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The rest of the line that begins with `name`.
std::optional<std::string_view> line_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (text.starts_with(name)) return text.substr(name.size(), end - name.size());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::uint64_t growth(std::uint64_t before, std::uint64_t after) {
  return after > before ? after - before : 0;
}

}  // namespace

std::optional<ThreadTimes> parse_schedstat(std::string_view text) {
  const auto ran = take_number(text);
  const auto queued = ran ? take_number(text) : std::nullopt;
  if (!queued) return std::nullopt;
  return ThreadTimes{*ran, *queued};
}

std::optional<std::uint64_t> parse_throttled(std::string_view text) {
  auto rest = line_of(text, "throttled_usec ");
  return rest ? take_number(*rest) : std::nullopt;
}

std::optional<std::uint64_t> parse_pressure(std::string_view text) {
  constexpr std::string_view kTotal = "total=";
  auto rest = line_of(text, "some ");
  const std::size_t at = rest ? rest->find(kTotal) : std::string_view::npos;
  if (at == std::string_view::npos) return std::nullopt;
  rest->remove_prefix(at + kTotal.size());
  return take_number(*rest);
}

std::optional<StolenTicks> parse_stolen(std::string_view text) {
  // Fields: user nice system idle iowait irq softirq steal.
  constexpr std::size_t kSteal = 7;
  auto rest = line_of(text, "cpu ");
  if (!rest) return std::nullopt;
  StolenTicks ticks;
  for (std::size_t i = 0; i <= kSteal; ++i) {
    const auto value = take_number(*rest);
    if (!value) return std::nullopt;
    ticks.all += *value;
    if (i == kSteal) ticks.stolen = *value;
  }
  return ticks;
}

wire::HostProbe difference(const HostCounts& before, const HostCounts& after, Duration looked) {
  wire::HostProbe probe;
  probe.looked_us = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(looked).count());
  std::uint64_t ran = 0;
  std::uint64_t queued = 0;
  for (const auto& [id, times] : after.threads) {
    const auto known = before.threads.find(id);
    const ThreadTimes earlier = known == before.threads.end() ? ThreadTimes{} : known->second;
    ran += growth(earlier.ran, times.ran);
    queued += growth(earlier.queued, times.queued);
  }
  probe.ran_us = ran / 1000;
  probe.queued_us = queued / 1000;
  probe.throttled_us = growth(before.throttled_us, after.throttled_us);
  if (const std::uint64_t ticks = growth(before.ticks.all, after.ticks.all); ticks > 0) {
    const std::uint64_t stolen = growth(before.ticks.stolen, after.ticks.stolen);
    probe.stolen_us =
        static_cast<std::uint64_t>(static_cast<double>(probe.looked_us) *
                                   static_cast<double>(stolen) / static_cast<double>(ticks));
  }
  probe.cpu_stalled_us = growth(before.cpu_stalled_us, after.cpu_stalled_us);
  probe.io_stalled_us = growth(before.io_stalled_us, after.io_stalled_us);
  probe.memory_stalled_us = growth(before.memory_stalled_us, after.memory_stalled_us);
  return probe;
}

}  // namespace antdt::antdtd
