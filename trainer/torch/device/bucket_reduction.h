// The one place where a bucket of the gradient in device memory is summed over the members.
//
// Here it is staged: as soon as backward has computed a bucket, a queue beside the computing one
// copies it to pinned memory of the host, the reducer's thread sums it over the host's collective,
// and the sum is copied back, while backward goes on with the next buckets. A collective that works
// in device memory takes the place of these three steps in reduce().
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "trainer/collective/collective.h"
#include "trainer/torch/device/queue.h"
#include "trainer/torch/gradient_reducer.h"

namespace antdt::trainer {

class StagedReduction final : public BucketReduction {
 public:
  // `gradients`: the flat gradient, which must outlive this object.
  explicit StagedReduction(torch::Tensor gradients);

  void begin(Collective& collective, std::size_t buckets) override;
  void completed(std::size_t bucket, GradientRange range) override;
  [[nodiscard]] Status reduce(Collective& collective, std::size_t bucket,
                              GradientRange range) override;
  // What is computed from now on sees the sums.
  void settle();

 private:
  struct Stage {
    Mark computed, copied;
    bool under_way = false;  // on its way to the host
  };
  void copy_to_host(Stage& stage, GradientRange range);

  torch::Tensor gradients_, host_;
  Queue compute_, beside_;
  std::vector<std::unique_ptr<Stage>> stages_;  // by bucket
  Mark returned_;                               // the last sum is in device memory
  bool alone_ = false;                          // there is no other member
};

}  // namespace antdt::trainer
