#include "trainer/torch/models/interactions.h"

#include <algorithm>

#include "core/check.h"
#include "trainer/torch/loops/interaction_loops.h"
#include "trainer/torch/models/tensor_ops.h"

namespace antdt::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// How many products are made at once: 1 MiB, which stays in a core's cache until it is used.
constexpr std::int64_t kProducts = 1 << 18;

std::size_t size_of(const torch::Tensor& t, std::int64_t dimension) {
  return static_cast<std::size_t>(t.size(dimension));
}

// Some rows of a layer's input. A row is one embedding dimension of one sample; all batch x dim
// rows are treated in the same way.
struct Rows {
  torch::Tensor x, x0;
  [[nodiscard]] PairShape shape() const { return {size_of(x, 0), size_of(x, 1), size_of(x0, 1)}; }
  [[nodiscard]] torch::Tensor products() const {
    torch::Tensor all = torch::empty({x.size(0), x.size(1) * x0.size(1)});
    multiply_pairs(shape(), x.data_ptr<float>(), x0.data_ptr<float>(), all.data_ptr<float>());
    return all;
  }
};

// Calls each(take) for as many rows at a time as give kProducts products; take(t) returns those
// rows of t.
template <class Each>
void for_rows(std::int64_t rows, std::int64_t products_of_a_row, const Each& each) {
  const std::int64_t step = std::max<std::int64_t>(1, kProducts / products_of_a_row);
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    each([&](const torch::Tensor& of) { return of.narrow(0, first, count); });
  }
}

class CompressedInteractions : public torch::autograd::Function<CompressedInteractions> {
 public:
  static Variable forward(AutogradContext* context, const Variable& maps, const Variable& vectors,
                          const Variable& weight) {
    const torch::Tensor x = maps.contiguous().flatten(0, 1);
    const torch::Tensor x0 = vectors.contiguous().flatten(0, 1);
    context->save_for_backward({x, x0, weight});
    torch::Tensor out = torch::empty({x.size(0), weight.size(0)});
    for_rows(x.size(0), weight.size(1), [&](const auto& take) {
      torch::Tensor to = take(out);
      torch::mm_out(to, Rows{take(x), take(x0)}.products(), weight.t());
    });
    return out.view({maps.size(0), maps.size(1), weight.size(0)});
  }

  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &x0 = saved[1], &weight = saved[2];
    const torch::Tensor of_out = out_gradients[0].flatten(0, 1);
    torch::Tensor of_x = torch::empty_like(x);
    torch::Tensor of_x0 = torch::empty_like(x0);
    torch::Tensor of_weight = torch::zeros_like(weight);
    for_rows(x.size(0), weight.size(1), [&](const auto& take) {
      const Rows rows{take(x), take(x0)};
      of_weight.addmm_(take(of_out).t(), rows.products());
      const torch::Tensor of_products = torch::mm(take(of_out), weight);
      pair_gradients(rows.shape(), rows.x.template data_ptr<float>(),
                     rows.x0.template data_ptr<float>(), of_products.data_ptr<float>(),
                     take(of_x).template data_ptr<float>(), take(of_x0).template data_ptr<float>());
    });
    const auto as_given = [&](const torch::Tensor& gradient) {
      return gradient.view({out_gradients[0].size(0), out_gradients[0].size(1), -1});
    };
    return {as_given(of_x), as_given(of_x0), of_weight};
  }
};

// LibTorch would multiply such small matrices with one call per sample, and compute each product
// twice.
class PairwiseProducts : public torch::autograd::Function<PairwiseProducts> {
 public:
  static Variable forward(AutogradContext* context, const Variable& vectors) {
    const torch::Tensor v = vectors.contiguous();
    context->save_for_backward({v});
    torch::Tensor out = torch::empty({v.size(0), v.size(1) * (v.size(1) - 1) / 2});
    multiply_vectors(shape_of(v), v.data_ptr<float>(), out.data_ptr<float>());
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const torch::Tensor v = context->get_saved_variables()[0];
    const torch::Tensor of_out = out_gradients[0].contiguous();
    torch::Tensor gradient = torch::zeros_like(v);
    add_vector_gradients(shape_of(v), v.data_ptr<float>(), of_out.data_ptr<float>(),
                         gradient.data_ptr<float>());
    return {gradient};
  }

 private:
  static VectorShape shape_of(const torch::Tensor& v) {
    return {size_of(v, 0), size_of(v, 1), size_of(v, 2)};
  }
};

}  // namespace

torch::Tensor compressed_interactions(const torch::Tensor& maps, const torch::Tensor& vectors,
                                      const torch::Tensor& weight) {
  ANTDT_CHECK(maps.dim() == 3 && vectors.dim() == 3 && maps.size(0) == vectors.size(0) &&
                  maps.size(1) == vectors.size(1) &&
                  weight.size(1) == maps.size(2) * vectors.size(2),
              "maps {}, vectors {}, weight {}", c10::str(maps.sizes()), c10::str(vectors.sizes()),
              c10::str(weight.sizes()));
  if (!maps.is_cpu()) return tensor_ops::compressed_interactions(maps, vectors, weight);
  return CompressedInteractions::apply(maps, vectors, weight);
}

torch::Tensor pairwise_products(const torch::Tensor& vectors) {
  ANTDT_CHECK(vectors.dim() == 3, "vectors {}", c10::str(vectors.sizes()));
  if (!vectors.is_cpu()) return tensor_ops::pairwise_products(vectors);
  return PairwiseProducts::apply(vectors);
}

}  // namespace antdt::trainer
