#include "trainer/torch/loops/interaction_loops.h"

#include <algorithm>

namespace antdt::trainer {

void multiply_pairs(const PairShape& shape, const float* x, const float* x0, float* products) {
  float* __restrict to = products;
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.maps, x0 += shape.fields) {
    for (std::size_t i = 0; i < shape.maps; ++i, to += shape.fields) {
      for (std::size_t j = 0; j < shape.fields; ++j) to[j] = x[i] * x0[j];
    }
  }
}

void pair_gradients(const PairShape& shape, const float* x, const float* x0, const float* g,
                    float* of_x, float* of_x0) {
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.maps, x0 += shape.fields) {
    float* __restrict to = of_x0;
    std::fill_n(to, shape.fields, 0.0F);
    for (std::size_t i = 0; i < shape.maps; ++i, g += shape.fields) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t j = 0; j < shape.fields; ++j) {
        sum += g[j] * x0[j];
        to[j] += g[j] * x[i];
      }
      *of_x++ = sum;
    }
    of_x0 += shape.fields;
  }
}

void multiply_vectors(const VectorShape& shape, const float* v, float* products) {
  for (std::size_t s = 0; s < shape.samples; ++s, v += shape.n * shape.dim) {
    for (std::size_t i = 1; i < shape.n; ++i) {
      const float* const a = v + i * shape.dim;
      for (const float* b = v; b != a; b += shape.dim) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t k = 0; k < shape.dim; ++k) sum += a[k] * b[k];
        *products++ = sum;
      }
    }
  }
}

// d <a,b> / d a = b, and vice versa.
void add_vector_gradients(const VectorShape& shape, const float* v, const float* g, float* of_v) {
  const std::size_t size = shape.n * shape.dim;
  for (std::size_t s = 0; s < shape.samples; ++s, v += size, of_v += size) {
    for (std::size_t i = 1; i < shape.n; ++i) {
      const float* const a = v + i * shape.dim;
      float* __restrict of_a = of_v + i * shape.dim;
      for (std::size_t j = 0; j < i; ++j, ++g) {
        const float* const b = v + j * shape.dim;
        float* __restrict of_b = of_v + j * shape.dim;
        for (std::size_t k = 0; k < shape.dim; ++k) {
          of_a[k] += *g * b[k];
          of_b[k] += *g * a[k];
        }
      }
    }
  }
}

}  // namespace antdt::trainer
