#include "trainer/torch/models/interactions.h"

#include <algorithm>

namespace antdt::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Products in one go: 1 MiB, which stays in a core's cache until it is used.
constexpr std::int64_t kProducts = 1 << 18;

// Calls each(first, count) for as many rows at a time as make that many products.
template <class Each>
void for_rows(std::int64_t rows, std::int64_t products_of_a_row, const Each& each) {
  const std::int64_t step = std::max<std::int64_t>(1, kProducts / products_of_a_row);
  for (std::int64_t first = 0; first < rows; first += step) {
    each(first, std::min(step, rows - first));
  }
}

// A row is one embedding dimension of one sample: the batch x dim rows are alike.
class CompressedInteractions : public torch::autograd::Function<CompressedInteractions> {
 public:
  static Variable forward(AutogradContext* context, const Variable& maps, const Variable& vectors,
                          const Variable& weight) {
    context->save_for_backward({maps, vectors, weight});
    const torch::Tensor x = maps.flatten(0, 1);
    const torch::Tensor x0 = vectors.flatten(0, 1);
    torch::Tensor out = torch::empty({x.size(0), weight.size(0)});
    for_rows(x.size(0), weight.size(1), [&](std::int64_t first, std::int64_t count) {
      torch::Tensor to = out.narrow(0, first, count);
      torch::mm_out(to, products(x.narrow(0, first, count), x0.narrow(0, first, count)),
                    weight.t());
    });
    return out.view({maps.size(0), maps.size(1), weight.size(0)});
  }

  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor x = saved[0].flatten(0, 1);
    const torch::Tensor x0 = saved[1].flatten(0, 1);
    const torch::Tensor& weight = saved[2];
    const torch::Tensor of_out = out_gradients[0].flatten(0, 1);
    torch::Tensor of_x = torch::empty_like(x);
    torch::Tensor of_x0 = torch::empty_like(x0);
    torch::Tensor of_weight = torch::zeros_like(weight);
    for_rows(x.size(0), weight.size(1), [&](std::int64_t first, std::int64_t count) {
      const auto rows = [&](const torch::Tensor& of) { return of.narrow(0, first, count); };
      of_weight.addmm_(rows(of_out).t(), products(rows(x), rows(x0)));
      const torch::Tensor of_products =
          torch::mm(rows(of_out), weight).view({count, x.size(1), x0.size(1)});
      rows(of_x).copy_((of_products * rows(x0).unsqueeze(1)).sum(2));
      rows(of_x0).copy_((of_products * rows(x).unsqueeze(2)).sum(1));
    });
    return {of_x.view_as(saved[0]), of_x0.view_as(saved[1]), of_weight};
  }

 private:
  static torch::Tensor products(const torch::Tensor& x, const torch::Tensor& x0) {
    return (x.unsqueeze(2) * x0.unsqueeze(1)).flatten(1);
  }
};

// LibTorch multiplies such small matrices one call a sample, and gives each product twice.
class PairwiseProducts : public torch::autograd::Function<PairwiseProducts> {
 public:
  static Variable forward(AutogradContext* context, const Variable& vectors) {
    const torch::Tensor v = vectors.contiguous();
    context->save_for_backward({v});
    const std::int64_t n = v.size(1);
    const std::int64_t dim = v.size(2);
    torch::Tensor out = torch::empty({v.size(0), n * (n - 1) / 2});
    const float* sample = v.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for (std::int64_t b = 0; b < v.size(0); ++b, sample += n * dim) {
      for (std::int64_t i = 1; i < n; ++i) {
        const float* const a = sample + i * dim;
        for (const float* c = sample; c != a; c += dim) {
          float sum = 0;
          for (std::int64_t k = 0; k < dim; ++k) sum += a[k] * c[k];
          *to++ = sum;
        }
      }
    }
    return out;
  }

  // d <a,c> / d a = c, and the other way round.
  static variable_list backward(AutogradContext* context, variable_list out_gradients) {
    const torch::Tensor v = context->get_saved_variables()[0];
    const torch::Tensor of_out = out_gradients[0].contiguous();
    torch::Tensor gradient = torch::zeros_like(v);
    const std::int64_t n = v.size(1);
    const std::int64_t dim = v.size(2);
    const float* sample = v.data_ptr<float>();
    const float* from = of_out.data_ptr<float>();
    float* of_sample = gradient.data_ptr<float>();
    for (std::int64_t b = 0; b < v.size(0); ++b, sample += n * dim, of_sample += n * dim) {
      for (std::int64_t i = 1; i < n; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
          add_products(*from++, dim, sample + i * dim, sample + j * dim, of_sample + i * dim,
                       of_sample + j * dim);
        }
      }
    }
    return {gradient};
  }

 private:
  static void add_products(float g, std::int64_t dim, const float* __restrict__ a,
                           const float* __restrict__ c, float* __restrict__ of_a,
                           float* __restrict__ of_c) {
    for (std::int64_t k = 0; k < dim; ++k) {
      of_a[k] += g * c[k];
      of_c[k] += g * a[k];
    }
  }
};

}  // namespace

torch::Tensor compressed_interactions(const torch::Tensor& maps, const torch::Tensor& vectors,
                                      const torch::Tensor& weight) {
  return CompressedInteractions::apply(maps, vectors, weight);
}

torch::Tensor pairwise_products(const torch::Tensor& vectors) {
  return PairwiseProducts::apply(vectors);
}

}  // namespace antdt::trainer
