// The layers of embedding.h and interactions.h by LibTorch's operations, for tensors in the memory
// of a device. The loops for a processor are faster there.
#pragma once

#include <torch/torch.h>

namespace antdt::trainer::tensor_ops {

// As embedding_rows(): the gradient is added to the rows of the table's own gradient.
[[nodiscard]] torch::Tensor embedding_rows(const torch::Tensor& table, const torch::Tensor& ids);
// As compressed_interactions(), with memory for all products at once.
[[nodiscard]] torch::Tensor compressed_interactions(const torch::Tensor& maps,
                                                    const torch::Tensor& vectors,
                                                    const torch::Tensor& weight);
[[nodiscard]] torch::Tensor pairwise_products(const torch::Tensor& vectors);

// The two tensors of FactorizedFields, with nothing beside the embeddings.
struct Factorized {
  torch::Tensor linear, vectors;
};
[[nodiscard]] Factorized factorized_fields(const torch::Tensor& table, const torch::Tensor& ids);

}  // namespace antdt::trainer::tensor_ops
