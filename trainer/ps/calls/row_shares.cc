#include "trainer/ps/calls/row_shares.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
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

using BytesBySlice = std::array<std::size_t, kSlices>;

bool all_fit(const BytesBySlice& slices, std::size_t servers) {
  std::vector<std::size_t> bytes(servers);
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    bytes[server_of_slice(slice, servers)] += slices[slice];
  }
  return std::ranges::max(bytes) <= kMostRowBytes;
}

// Slices are whole, so the largest share of 9 servers is 8 of 64 slices. 0: no number suffices.
std::uint32_t fewest_for(const BytesBySlice& slices) {
  std::uint32_t fewest = 0;
  for (std::uint32_t servers = kSlices; servers > 0 && all_fit(slices, servers); --servers) {
    fewest = servers;
  }
  return fewest;
}

// How many bytes of the message one row of these is.
using BytesOfRow = std::function<std::size_t(const wire::PsRows&)>;

std::size_t keys_in(const wire::PsRows& rows) { return rows.keys.size() / sizeof(std::uint64_t); }

tl::unexpected<Error> share_is_too_large(std::size_t server, std::size_t bytes,
                                         const std::vector<std::vector<wire::PsRows>>& shares,
                                         const BytesOfRow& bytes_of_row) {
  BytesBySlice slices{};
  for (const auto& share : shares) {
    for (const wire::PsRows& rows : share) {
      for (std::size_t i = 0; i < keys_in(rows); ++i) {
        std::uint64_t key = 0;
        std::memcpy(&key, rows.keys.data() + i * sizeof key, sizeof key);
        slices[slice_of(key)] += bytes_of_row(rows);
      }
    }
  }
  const std::string what = fmt::format(
      "the rows of one batch on parameter server s{} are {} bytes, and a message has "
      "at most {}: ",
      server, bytes, kMostRowBytes);
  const std::uint32_t fewest = fewest_for(slices);
  if (fewest == 0) {
    return fail(ErrorKind::kTooLarge,
                "{}make the model or its batches smaller; not even {} servers would suffice", what,
                kSlices);
  }
  return fail(ErrorKind::kTooLarge,
              "{0}{1} servers or more would suffice, and there are {2}. Set [roles.server] count "
              "to {1} for a new run, or use antdt resize RUN {1} --role server while a run trains "
              "(with sync = \"hybrid\" that is impossible), or make the model or its batches "
              "smaller",
              what, fewest, shares.size());
}

Status check_fit(const std::vector<std::vector<wire::PsRows>>& shares,
                 const BytesOfRow& bytes_of_row) {
  for (std::size_t s = 0; s < shares.size(); ++s) {
    std::size_t bytes = 0;
    for (const wire::PsRows& rows : shares[s]) bytes += keys_in(rows) * bytes_of_row(rows);
    if (bytes > kMostRowBytes) return share_is_too_large(s, bytes, shares, bytes_of_row);
  }
  return {};
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
  return check_fit(shares, [](const wire::PsRows& rows) {
    return keys_in(rows) == 0 ? 0 : (rows.keys.size() + rows.values.size()) / keys_in(rows);
  });
}

Status check_answers(const std::vector<std::vector<wire::PsRows>>& keys,
                     const std::vector<std::uint32_t>& widths) {
  for (const auto& share : keys) {
    for (const wire::PsRows& rows : share) ANTDT_RETURN_IF_ERROR(width_of(rows.table, widths));
  }
  ANTDT_RETURN_IF_ERROR(check_sizes(keys));
  return check_fit(keys,
                   [&](const wire::PsRows& rows) { return widths[rows.table] * sizeof(float); });
}

std::uint32_t fewest_servers(const std::vector<TableGradient>& rows) {
  BytesBySlice slices{};
  for (const auto& [table, of] : rows) {
    if (of.keys.empty()) continue;
    const std::size_t row =
        sizeof(std::uint64_t) + of.values.size() / of.keys.size() * sizeof(float);
    for (const std::uint64_t key : of.keys) slices[slice_of(key)] += row;
  }
  return fewest_for(slices);
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
