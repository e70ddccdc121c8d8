#include "trainer/ps/calls/row_shares.h"

#include <cstring>
#include <numeric>

#include "trainer/ps/placement.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/store.h"

namespace antdt::ps {
namespace {

Result<std::uint32_t> width_of(std::uint32_t table, const std::vector<std::uint32_t>& widths) {
  if (table < widths.size()) return widths[table];
  return fail(ErrorKind::kUsage, "table {} of {} that are open", table, widths.size());
}

Status check_size(std::size_t server, std::size_t servers, std::size_t bytes) {
  if (bytes <= kMostRowBytes) return {};
  const std::size_t times = (bytes + kMostRowBytes - 1) / kMostRowBytes;
  return fail(
      ErrorKind::kUsage,
      "the rows of one batch on parameter server s{} are {} bytes, and a message has at most "
      "{}: set [roles.server] count to {} or more (it is {}), or make the model or its "
      "batches smaller",
      server, bytes, kMostRowBytes, servers * times, servers);
}

}  // namespace

Split split_keys(const std::vector<std::uint64_t>& keys, std::size_t servers) {
  Split parts(servers);
  if (servers == 1) {  // saves a division for each key
    parts.front().resize(keys.size());
    std::iota(parts.front().begin(), parts.front().end(), std::size_t{0});
    return parts;
  }
  for (auto& part : parts) part.reserve(keys.size() / servers + 16);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    parts[server_of_slice(slice_of(keys[i]), servers)].push_back(i);
  }
  return parts;
}

Result<std::vector<std::vector<wire::PsRows>>> shares_of(const std::vector<TableGradient>& tables,
                                                         const std::vector<std::uint32_t>& widths,
                                                         std::size_t servers) {
  std::vector<std::vector<wire::PsRows>> shares(servers);
  for (const auto& [table, gradient] : tables) {
    ANTDT_TRY(const std::uint32_t width, width_of(table, widths));
    if (gradient.values.size() != gradient.keys.size() * width) {
      return fail(ErrorKind::kUsage, "{} floats for {} rows of table {}, of {} floats each",
                  gradient.values.size(), gradient.keys.size(), table, width);
    }
    const Split parts = split_keys(gradient.keys, servers);
    for (std::size_t s = 0; s < parts.size(); ++s) {
      std::vector<std::uint64_t> keys;
      std::vector<float> values;
      keys.reserve(parts[s].size());
      values.reserve(parts[s].size() * width);
      for (const std::size_t i : parts[s]) {
        keys.push_back(gradient.keys[i]);
        const auto row = gradient.values.begin() + static_cast<std::ptrdiff_t>(i * width);
        values.insert(values.end(), row, row + width);
      }
      shares[s].push_back({table, to_bytes(keys), to_bytes(values)});
    }
  }
  ANTDT_RETURN_IF_ERROR(check_sizes(shares));
  return shares;
}

Status check_sizes(const std::vector<std::vector<wire::PsRows>>& shares) {
  for (std::size_t s = 0; s < shares.size(); ++s) {
    std::size_t bytes = 0;
    for (const wire::PsRows& rows : shares[s]) bytes += rows.keys.size() + rows.values.size();
    ANTDT_RETURN_IF_ERROR(check_size(s, shares.size(), bytes));
  }
  return {};
}

Status check_answers(const std::vector<std::vector<wire::PsRows>>& keys,
                     const std::vector<std::uint32_t>& widths) {
  ANTDT_RETURN_IF_ERROR(check_sizes(keys));
  for (std::size_t s = 0; s < keys.size(); ++s) {
    std::size_t bytes = 0;
    for (const wire::PsRows& rows : keys[s]) {
      ANTDT_TRY(const std::uint32_t width, width_of(rows.table, widths));
      bytes += rows.keys.size() / sizeof(std::uint64_t) * width * sizeof(float);
    }
    ANTDT_RETURN_IF_ERROR(check_size(s, keys.size(), bytes));
  }
  return {};
}

Status join_rows(const PulledTable& table, std::size_t at,
                 const std::vector<wire::PsPulled>& replies,
                 const std::vector<std::uint32_t>& widths, std::vector<float>& values) {
  ANTDT_TRY(const std::uint32_t width, width_of(table.table, widths));
  const std::size_t row = width * sizeof(float);
  values.resize(table.rows * width);
  auto* out = reinterpret_cast<char*>(values.data());
  for (std::size_t s = 0; s < table.parts.size(); ++s) {
    const std::vector<std::size_t>& part = table.parts[s];
    const bool there = at < replies[s].values.size();
    if (!there || replies[s].values[at].size() != part.size() * row) {
      return fail(ErrorKind::kRefused,
                  "parameter server s{} sent {} bytes for {} rows of table {}, of {} floats each",
                  s, there ? replies[s].values[at].size() : 0, part.size(), table.table, width);
    }
    const char* in = replies[s].values[at].data();
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::memcpy(out + part[i] * row, in + i * row, row);
    }
  }
  return {};
}

}  // namespace antdt::ps
