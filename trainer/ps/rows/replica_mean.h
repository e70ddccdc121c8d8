// The mean of the workers' replicas of one table's rows, as far as one server holds them (rule
// "mean": trainer.sync = "shadow-ma" and "shadow-bmuf", docs/synchronisation/shadow.md).
//
// Each worker sends its replica again and again, and the newest one of each worker counts, so that
// none waits for another. A replica leaves the mean
//   - when its worker leaves the group, and
//   - when it is outdated: when more than kRounds exchanges for each replica of the mean were made
//     since it was sent. Otherwise the replica of a worker that stands still would hold the others
//     where it is, as they would be drawn back to it with each exchange. It comes back with the
//     worker's next exchange.
//
// The sum is kept in double precision, so an exchange costs as much with many workers as with few.
// To replace a replica rounds the sum by 2^-53 of its size; a million exchanges change it by less
// than a hundredth of the last bit of a float. When a replica leaves, the rest is added up anew.
//
// A value: the same calls give the same mean, to the last bit.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "trainer/ps/replica/node_image.h"

namespace antdt::ps {

class ReplicaMean {
 public:
  static constexpr std::uint64_t kRounds = 8;

  struct Replica {
    std::uint64_t exchange = 0;  // the number of the exchange that brought it
    std::vector<float> values;   // `width` floats for each key
  };

  // `keys`: the rows of every replica, rising.
  ReplicaMean(std::vector<std::uint64_t> keys, std::uint32_t width)
      : keys_(std::move(keys)), width_(width), sum_(keys_.size() * width) {}

  // The next exchange: this is the worker's replica from now on. As many floats as the rows have.
  void exchange(Member worker, std::vector<float> values);
  // The worker leaves, and with it its replica.
  void leave(Member worker);

  [[nodiscard]] const std::vector<std::uint64_t>& keys() const { return keys_; }
  // How many exchanges there were.
  [[nodiscard]] std::uint64_t exchanges() const { return exchanges_; }
  // Those that count.
  [[nodiscard]] const std::map<Member, Replica>& replicas() const { return replicas_; }
  // The mean of these, of which there must be one; as many floats as the rows have.
  [[nodiscard]] std::vector<float> mean() const;
  // Memory in use.
  [[nodiscard]] std::uint64_t bytes() const;

  [[nodiscard]] ReplicaMeanImage image() const;
  // Error (kCorrupt): sizes that do not fit, or keys that do not rise.
  [[nodiscard]] static Result<ReplicaMean> restored(const ReplicaMeanImage& image,
                                                    std::uint32_t width);

 private:
  void add_up();

  std::vector<std::uint64_t> keys_;
  std::uint32_t width_;
  std::uint64_t exchanges_ = 0;
  std::map<Member, Replica> replicas_;
  std::vector<double> sum_;
};

}  // namespace antdt::ps
