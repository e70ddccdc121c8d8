// The loops of factorized_fields (embedding.h) over plain arrays, vectorised.
//
// A row of the table is a first-order weight and a vector of `dim` floats.
#pragma once

#include <cstdint>

namespace antdt::trainer {

struct FactorizedShape {
  std::int64_t batch = 0;
  std::int64_t fields = 0;
  std::int64_t dim = 0;
  std::int64_t stride = 0;  // floats from one record's vectors to the next one's
};

// table: rows x (dim + 1); ids: batch x fields. Written are vectors: batch x fields x dim with
// `stride`, sums over the fields: batch x dim, and linear: batch.
void look_up_factorized(const FactorizedShape& shape, const float* table, const std::int64_t* ids,
                        float* vectors, float* sums, float* linear);

// Adds the gradients of what look_up_factorized wrote to those of the table's rows: that of a
// vector is its own, and that of linear times the sum of the other fields' vectors. of_vectors has
// the stride of vectors.
void add_factorized_gradients(const FactorizedShape& shape, const std::int64_t* ids,
                              const float* vectors, const float* sums, const float* of_linear,
                              const float* of_vectors, float* of_table);

}  // namespace antdt::trainer
