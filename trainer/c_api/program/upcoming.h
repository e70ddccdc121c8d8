// The records of a phase that were taken for this member, in the order in which it will be given
// them, so that the program can read them ahead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "trainer/data/dataset.h"

namespace antdt::capi {

class Upcoming {
 public:
  // A phase of a generation begins, or goes on in it; ends.
  void begin(Generation generation, std::uint64_t phase);
  void end();
  // Taken; in any thread.
  void add(std::span<const std::uint64_t> records);
  // So many were given to the program; the position of the first of them.
  [[nodiscard]] std::uint64_t give(std::uint64_t records);

  // Fills what there is from position `from` on, waiting for one at least; how many. Nothing: the
  // phase is over. 0: none within `timeout`. A position that was given already counts as the first
  // that is not; `from` is set to what was filled from.
  [[nodiscard]] std::optional<std::uint64_t> tell(Generation generation, std::uint64_t phase,
                                                  std::uint64_t& from,
                                                  std::span<std::uint64_t> records,
                                                  Duration timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Generation generation_;
  std::uint64_t phase_ = 0;
  bool open_ = false;
  std::uint64_t given_ = 0;            // their positions are below
  std::deque<std::uint64_t> records_;  // from position given_ on
};

// Record i is the number i; the program reads what it stands for. What is read is upcoming.
class RecordNumbers final : public data::RecordReader {
 public:
  explicit RecordNumbers(Upcoming& upcoming) : upcoming_(upcoming) { shape_.id_width = 1; }
  [[nodiscard]] const data::DataShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t records() const override { return 0; }  // the ledger knows
  [[nodiscard]] Status read(std::span<const std::uint64_t> numbers, data::Examples& out) override;

 private:
  Upcoming& upcoming_;
  data::DataShape shape_;
};

}  // namespace antdt::capi
