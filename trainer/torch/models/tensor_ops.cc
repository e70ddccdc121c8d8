#include "trainer/torch/models/tensor_ops.h"

namespace antdt::trainer::tensor_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// LibTorch's own backward makes a gradient of the size of the table first.
class Rows : public torch::autograd::Function<Rows> {
 public:
  static Variable forward(AutogradContext* context, const Variable& table,
                          const torch::Tensor& ids) {
    context->saved_data["ids"] = ids;
    context->saved_data["gradient"] = table.grad();
    return table.index_select(0, ids.flatten()).view({ids.size(0), ids.size(1), table.size(1)});
  }
  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const torch::Tensor ids = context->saved_data["ids"].toTensor();
    torch::Tensor gradient = context->saved_data["gradient"].toTensor();
    gradient.index_add_(0, ids.flatten(),
                        out_gradients[0].to(torch::kFloat32).reshape({-1, gradient.size(1)}));
    return {Variable(), Variable()};
  }
};

}  // namespace

torch::Tensor embedding_rows(const torch::Tensor& table, const torch::Tensor& ids) {
  return Rows::apply(table, ids);
}

torch::Tensor compressed_interactions(const torch::Tensor& maps, const torch::Tensor& vectors,
                                      const torch::Tensor& weight) {
  const torch::Tensor products = maps.unsqueeze(3) * vectors.unsqueeze(2);
  return products.flatten(2).matmul(weight.t());
}

torch::Tensor pairwise_products(const torch::Tensor& vectors) {
  using torch::indexing::Slice;
  const std::int64_t count = vectors.size(1);
  const torch::Tensor at = torch::tril_indices(
      count, count, -1, torch::TensorOptions(torch::kInt64).device(vectors.device()));
  return vectors.bmm(vectors.transpose(1, 2)).index({Slice(), at[0], at[1]});
}

Factorized factorized_fields(const torch::Tensor& table, const torch::Tensor& ids) {
  const torch::Tensor rows = embedding_rows(table, ids);
  const torch::Tensor vectors = rows.slice(2, 1);
  const torch::Tensor square_of_sum = vectors.sum(1).square().sum(1);
  const torch::Tensor pairs = 0.5 * (square_of_sum - vectors.square().sum({1, 2}));
  return {rows.select(2, 0).sum(1) + pairs, vectors.flatten(1)};
}

}  // namespace antdt::trainer::tensor_ops
