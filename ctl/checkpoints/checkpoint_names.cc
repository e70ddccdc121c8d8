#include "ctl/checkpoints/checkpoint_names.h"

#include <algorithm>
#include <charconv>

#include "core/os/directory.h"

namespace antdt::ctl::copies {
namespace {

bool is_plain(std::string_view name) {
  constexpr std::string_view kOthers = "-._";
  return is_file_name(name) && std::ranges::all_of(name, [&](char c) {
           const bool alphanumeric =
               (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
           return alphanumeric || kOthers.find(c) != std::string_view::npos;
         });
}

// Takes `before` and a number from the front of `rest`.
std::optional<std::uint64_t> number_after(std::string_view before, std::string_view& rest) {
  if (!rest.starts_with(before)) return {};
  const char* const begin = rest.data() + before.size();
  const char* const end = rest.data() + rest.size();
  std::uint64_t number = 0;
  const auto [stopped, error] = std::from_chars(begin, end, number);
  if (error != std::errc()) return {};
  rest = {stopped, static_cast<std::size_t>(end - stopped)};
  return number;
}

}  // namespace

std::optional<std::pair<std::uint64_t, std::uint64_t>> order_of(std::string_view name) {
  if (!is_plain(name)) return {};
  const auto step = number_after("s", name);
  const auto lineage = step ? number_after("-l", name) : std::nullopt;
  if (!lineage || !name.starts_with('-')) return {};
  return std::pair{*lineage, *step};
}

std::optional<Age> age_of(std::string_view unfinished) {
  if (!is_plain(unfinished)) return {};
  const auto number = number_after(".tmp-", unfinished);
  if (!number || !(unfinished.empty() || unfinished.starts_with('-'))) return {};
  const std::size_t at = unfinished.find("-g");
  if (at != std::string_view::npos) unfinished.remove_prefix(at);
  return Age{number_after("-g", unfinished).value_or(0), *number};
}

}  // namespace antdt::ctl::copies
