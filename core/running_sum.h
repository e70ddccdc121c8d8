// The XXH3 checksum of bytes that arrive in pieces, as in manifests of checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt {

class RunningSum {
 public:
  RunningSum();
  RunningSum(RunningSum&&) noexcept;
  RunningSum& operator=(RunningSum&&) noexcept;
  ~RunningSum();

  void add(std::string_view bytes);
  // Adds the content of the file `fd` from its beginning, at most `limit` bytes.
  [[nodiscard]] Status add_file(int fd, std::uint64_t limit = ~std::uint64_t{0});
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::string hex() const;  // 16 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

}  // namespace antdt
