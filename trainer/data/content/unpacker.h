// Unpacks a file from an access point on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "trainer/data/content/points.h"

namespace antdt::data {

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // Fills `out` from its front with what comes next and says how much; less than asked for only at
  // the end of the content. kCorrupt: the file is damaged or cut short.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<char> out) = 0;
  // How much of the file has been read for what came so far.
  [[nodiscard]] virtual std::uint64_t position() const = 0;
};

// `packed` is the whole file, which outlives the unpacker; `path` is for messages. `found`, if any,
// is given access points on the way: the beginning must then be that of the file. What gzip checks
// (CRC) is checked where a member is read from its beginning.
[[nodiscard]] Result<std::unique_ptr<Unpacker>> unpack(Packing packing, const std::string& path,
                                                       std::string_view packed,
                                                       const AccessPoint& from,
                                                       PointsBuilder* found = nullptr);

[[nodiscard]] Result<std::unique_ptr<Unpacker>> unpack_gzip(const std::string& path,
                                                            std::string_view packed,
                                                            const AccessPoint& from,
                                                            PointsBuilder* found);
[[nodiscard]] Result<std::unique_ptr<Unpacker>> unpack_zstd(const std::string& path,
                                                            std::string_view packed,
                                                            const AccessPoint& from,
                                                            PointsBuilder* found);

}  // namespace antdt::data
