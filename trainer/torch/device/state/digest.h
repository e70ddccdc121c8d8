// Numbers by which states in a device's memory are compared, computed where the state is.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace antdt::trainer {

// Divides an array into blocks of 16,384 words. The number of a block is the sum of its words of 32
// bits, each times an odd factor that depends on the word's place in the block, modulo 2^64. So two
// blocks in which one word differs have different numbers; others have equal ones with a
// probability of at most 2^-32 (multilinear hashing: Lemire and Kaser, "Strongly universal string
// hashing is fast", 2014), and all their blocks would have to.
class Digest {
 public:
  explicit Digest(torch::Device device);

  // The numbers of all blocks of flat arrays of float32, once the device has computed them. It
  // needs 16 MiB of the device's memory, and throws what LibTorch throws if they cannot be had.
  [[nodiscard]] std::vector<std::uint64_t> of(const std::vector<torch::Tensor>& arrays) const;

 private:
  void add(const torch::Tensor& words, std::vector<torch::Tensor>& sums) const;

  torch::Tensor factors_;  // int64, one for each word of a block
};

}  // namespace antdt::trainer
