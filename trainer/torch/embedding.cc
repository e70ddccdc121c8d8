#include "trainer/torch/embedding.h"

#include <vector>

#include "trainer/torch/loops/factorized_loops.h"
#include "trainer/torch/models/tensor_ops.h"

namespace antdt::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class EmbeddingRows : public torch::autograd::Function<EmbeddingRows> {
 public:
  static Variable forward(AutogradContext* context, const Variable& table,
                          const torch::Tensor& ids) {
    context->saved_data["ids"] = ids;
    context->saved_data["gradient"] = table.grad();
    const std::int64_t width = table.size(1);
    torch::Tensor out = torch::empty({ids.size(0), ids.size(1), width});
    const float* const from = table.data_ptr<float>();
    const std::int64_t* const id = ids.data_ptr<std::int64_t>();
    float* to = out.data_ptr<float>();
    for (std::int64_t i = 0; i < ids.numel(); ++i, to += width) {
      const float* const row = from + id[i] * width;
      for (std::int64_t k = 0; k < width; ++k) to[k] = row[k];
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const torch::Tensor ids = context->saved_data["ids"].toTensor();
    torch::Tensor gradient = context->saved_data["gradient"].toTensor();
    const torch::Tensor of_out = out_gradients[0].contiguous();
    const std::int64_t width = gradient.size(1);
    const std::int64_t* const id = ids.data_ptr<std::int64_t>();
    const float* from = of_out.data_ptr<float>();
    float* const to = gradient.data_ptr<float>();
    for (std::int64_t i = 0; i < ids.numel(); ++i, from += width) {
      float* const row = to + id[i] * width;
      for (std::int64_t k = 0; k < width; ++k) row[k] += from[k];
    }
    return {Variable(), Variable()};
  }
};

class FactorizedLookup : public torch::autograd::Function<FactorizedLookup> {
 public:
  static variable_list forward(AutogradContext* context, const Variable& table,
                               const torch::Tensor& ids, const torch::Tensor& beside) {
    const std::int64_t batch = ids.size(0);
    const std::int64_t fields = ids.size(1);
    const std::int64_t width = table.size(1);
    const std::int64_t dim = width - 1;
    torch::Tensor linear = torch::empty({batch});
    const std::int64_t stride = fields * dim + beside.size(1);
    torch::Tensor vectors = torch::empty({batch, stride});
    torch::Tensor sums = torch::empty({batch, dim});
    look_up_factorized({.batch = batch, .fields = fields, .dim = dim, .stride = stride},
                       table.data_ptr<float>(), ids.data_ptr<std::int64_t>(),
                       vectors.data_ptr<float>(), sums.data_ptr<float>(), linear.data_ptr<float>());
    vectors.narrow(1, fields * dim, beside.size(1)).copy_(beside);
    context->saved_data["ids"] = ids;
    context->saved_data["gradient"] = table.grad();
    context->saved_data["sums"] = sums;
    context->saved_data["vectors"] = vectors.detach();
    return {linear, vectors};
  }

  // d pairs / d v_f = sum over the other fields of v = sums - v_f.
  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const torch::Tensor ids = context->saved_data["ids"].toTensor();
    torch::Tensor gradient = context->saved_data["gradient"].toTensor();
    const torch::Tensor sums = context->saved_data["sums"].toTensor();
    const torch::Tensor vectors = context->saved_data["vectors"].toTensor();
    const torch::Tensor of_linear = out_gradients[0].contiguous();
    const torch::Tensor of_vectors = out_gradients[1].contiguous();
    add_factorized_gradients({.batch = ids.size(0),
                              .fields = ids.size(1),
                              .dim = gradient.size(1) - 1,
                              .stride = vectors.size(1)},
                             ids.data_ptr<std::int64_t>(), vectors.data_ptr<float>(),
                             sums.data_ptr<float>(), of_linear.data_ptr<float>(),
                             of_vectors.data_ptr<float>(), gradient.data_ptr<float>());
    return {Variable(), Variable(), Variable()};
  }
};

}  // namespace

torch::Tensor embedding_rows(const torch::Tensor& table, const torch::Tensor& ids) {
  if (!table.is_cpu()) return tensor_ops::embedding_rows(table, ids);
  return EmbeddingRows::apply(table, ids);
}

FactorizedFields factorized_fields(const torch::Tensor& table, const torch::Tensor& ids,
                                   const torch::Tensor& beside) {
  if (!table.is_cpu()) {
    auto [linear, vectors] = tensor_ops::factorized_fields(table, ids);
    return {std::move(linear), torch::cat({vectors, beside}, 1)};
  }
  variable_list out = FactorizedLookup::apply(table, ids, beside);
  return {out[0], out[1]};
}

}  // namespace antdt::trainer
