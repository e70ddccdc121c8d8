// The one place where a bucket of the gradient in device memory is summed over the members.
//
// As soon as backward has computed a bucket, a queue beside the computing one copies it to pinned
// memory of the host, the reducer's thread sums it over the host's collective, and the sum is
// copied back, while backward goes on with the next buckets. If the collective works in device
// memory (Collective::device), it sums the bucket in that queue instead, and nothing is copied.
// Pinned memory is as scarce as it is costly, so each bucket's is taken when it is first copied,
// and is its own: LibTorch gives out powers of two, up to twice the gradient if that were one
// piece.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/collective/collective.h"
#include "trainer/torch/device/queue.h"
#include "trainer/torch/gradient_reducer.h"

namespace antdt::trainer {

class DeviceReduction final : public BucketReduction {
 public:
  // `gradients`: the flat gradient, which must outlive this object.
  explicit DeviceReduction(torch::Tensor gradients);

  void begin(Collective& collective, std::size_t buckets) override;
  void completed(std::size_t bucket, GradientRange range) override;
  [[nodiscard]] Status reduce(Collective& collective, std::size_t bucket,
                              GradientRange range) override;
  // After the last bucket: what is computed from now on sees the sums. Blocks until they are there
  // if they are made in device memory. Errors are the collective's.
  [[nodiscard]] Status settle();
  // After a sum that failed: what is computed from now on comes after the sums that were made.
  void order() { returned_.hold_up(compute_); }
  // Of the host's memory, for copies; not while buckets are summed.
  [[nodiscard]] std::size_t staging_bytes() const;

 private:
  struct Stage {
    Mark computed, copied;
    torch::Tensor host;      // its copy in the host's memory; undefined: there was none yet
    bool under_way = false;  // the queue beside waits for the bucket, or copies it
  };
  void send_off(Stage& stage, GradientRange range);
  [[nodiscard]] Status sum_on_device(GradientRange range);
  [[nodiscard]] Status sum_on_host(Collective& collective, const Stage& stage, GradientRange range);

  torch::Tensor gradients_;
  Queue compute_, beside_;
  std::vector<std::unique_ptr<Stage>> stages_;  // by bucket
  Mark returned_;                               // the last sum is in device memory
  DeviceCollective* on_device_ = nullptr;       // of the present step; null: staged
  bool alone_ = false;                          // there is no other member
};

}  // namespace antdt::trainer
