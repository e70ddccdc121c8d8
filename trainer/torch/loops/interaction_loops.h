// The loops of models/interactions.h over plain memory, without LibTorch's headers, so that they
// can be compiled with options of their own. Arguments must not overlap; rows are contiguous.
#pragma once

#include <cstddef>

namespace antdt::trainer {

// x: rows x maps, x0: rows x fields.
struct PairShape {
  std::size_t rows = 0;
  std::size_t maps = 0;
  std::size_t fields = 0;
};
// products[r,i,j] = x[r,i] * x0[r,j]
void multiply_pairs(const PairShape& shape, const float* x, const float* x0, float* products);
// With g the gradient of those products:
// of_x[r,i] = sum over j of g[r,i,j] * x0[r,j]; of_x0[r,j] = sum over i of g[r,i,j] * x[r,i]
void pair_gradients(const PairShape& shape, const float* x, const float* x0, const float* g,
                    float* of_x, float* of_x0);

// v: samples x n x dim.
struct VectorShape {
  std::size_t samples = 0;
  std::size_t n = 0;
  std::size_t dim = 0;
};
// products: for each sample <v1,v0>, <v2,v0>, <v2,v1>, …
void multiply_vectors(const VectorShape& shape, const float* v, float* products);
// With g the gradient of those products, adds to of_v.
void add_vector_gradients(const VectorShape& shape, const float* v, const float* g, float* of_v);

}  // namespace antdt::trainer
