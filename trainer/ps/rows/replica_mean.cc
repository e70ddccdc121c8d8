#include "trainer/ps/rows/replica_mean.h"

#include <algorithm>

#include "core/check.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::ps {

void ReplicaMean::exchange(Member worker, std::vector<float> values) {
  ANTDT_CHECK(values.size() == sum_.size(), "a replica of {} floats where others have {}",
              values.size(), sum_.size());
  Replica& replica = replicas_[worker];
  if (replica.values.empty()) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += values[i];
  } else {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] += double{values[i]} - double{replica.values[i]};
    }
  }
  replica = {++exchanges_, std::move(values)};
  const std::uint64_t most = kRounds * replicas_.size();
  const auto outdated = std::erase_if(
      replicas_, [&](const auto& r) { return exchanges_ - r.second.exchange > most; });
  if (outdated > 0) add_up();
}

void ReplicaMean::leave(Member worker) {
  if (replicas_.erase(worker) > 0) add_up();
}

void ReplicaMean::add_up() {
  std::ranges::fill(sum_, 0.0);
  for (const auto& [worker, replica] : replicas_) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += replica.values[i];
  }
}

std::vector<float> ReplicaMean::mean() const {
  ANTDT_CHECK(!replicas_.empty(), "the mean of no replica, after {} exchanges", exchanges_);
  const auto count = static_cast<double>(replicas_.size());
  std::vector<float> mean(sum_.size());
  std::ranges::transform(sum_, mean.begin(),
                         [&](double sum) { return static_cast<float>(sum / count); });
  return mean;
}

std::uint64_t ReplicaMean::bytes() const {
  return keys_.size() * sizeof(std::uint64_t) + sum_.size() * sizeof(double) +
         replicas_.size() * sum_.size() * sizeof(float);
}

// ------------------------------------------------------------------------- image

// The sum, too: added up anew, it could differ in its last bit.
ReplicaMeanImage ReplicaMean::image() const {
  ReplicaMeanImage image;
  image.keys = to_bytes(keys_);
  image.exchanges = exchanges_;
  image.sum = to_bytes(sum_);
  for (const auto& [worker, replica] : replicas_) {
    image.replicas.push_back(
        {{worker.worker, worker.attempt}, replica.exchange, to_bytes(replica.values)});
  }
  return image;
}

Result<ReplicaMean> ReplicaMean::restored(const ReplicaMeanImage& image, std::uint32_t width) {
  ANTDT_TRY(auto keys, keys_from_bytes(image.keys));
  ReplicaMean mean(std::move(keys), width);
  mean.exchanges_ = image.exchanges;
  ANTDT_TRY(mean.sum_, doubles_from_bytes(image.sum, mean.sum_.size()));
  for (const ReplicaMeanImage::Replica& from : image.replicas) {
    Replica& replica = mean.replicas_[{from.member.worker, from.member.attempt}];
    if (from.exchange == 0 || from.exchange > image.exchanges) {
      return fail(ErrorKind::kCorrupt, "a replica of exchange {} of {}", from.exchange,
                  image.exchanges);
    }
    replica.exchange = from.exchange;
    ANTDT_TRY(replica.values, floats_from_bytes(from.values, mean.sum_.size()));
  }
  return mean;
}

}  // namespace antdt::ps
