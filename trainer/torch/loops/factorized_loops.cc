#include "trainer/torch/loops/factorized_loops.h"

#include <array>

#include "trainer/torch/loops/vectorised.h"

namespace antdt::trainer {
namespace {

// Vectors are handled in pieces of this many floats, which stay in registers.
constexpr std::int64_t kPiece = 8;
// A row of a large table is in no near cache: its memory is asked for this many rows ahead.
constexpr std::int64_t kAhead = 8;

// One vector's contribution: it is copied, and added to the sums with its squares.
inline __attribute__((always_inline)) void add_vector(const float* __restrict from,
                                                      float* __restrict to, float* __restrict sum,
                                                      float* __restrict squares,
                                                      std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) {
    to[k] = from[k];
    sum[k] += from[k];
    squares[k] += from[k] * from[k];
  }
}

// Twice the second-order interactions of one record in the floats [first, first + count) of its
// vectors.
inline __attribute__((always_inline)) float look_up_piece(const FactorizedShape& shape,
                                                          const float* table,
                                                          const std::int64_t* ids, float* vectors,
                                                          float* sums, std::int64_t first,
                                                          std::int64_t count) {
  std::array<float, kPiece> sum{};
  std::array<float, kPiece> squares{};
  for (std::int64_t f = 0; f < shape.fields; ++f) {
    add_vector(table + ids[f] * (shape.dim + 1) + 1 + first, vectors + f * shape.dim + first,
               sum.data(), squares.data(), count);
  }
  float interactions = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    sums[first + k] = sum[static_cast<std::size_t>(k)];
    interactions += sum[static_cast<std::size_t>(k)] * sum[static_cast<std::size_t>(k)] -
                    squares[static_cast<std::size_t>(k)];
  }
  return interactions;
}

// `dim` is that of the shape, as a constant where the caller knows it.
inline __attribute__((always_inline)) void look_up(const FactorizedShape& shape, std::int64_t dim,
                                                   const float* table, const std::int64_t* ids,
                                                   float* vectors, float* sums, float* linear) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    float first_order = 0;
    for (std::int64_t f = 0; f < shape.fields; ++f) first_order += table[ids[f] * (dim + 1)];
    float interactions = 0;
    std::int64_t first = 0;
    for (; first + kPiece <= dim; first += kPiece) {
      interactions += look_up_piece(shape, table, ids, vectors, sums, first, kPiece);
    }
    if (first < dim) {
      interactions += look_up_piece(shape, table, ids, vectors, sums, first, dim - first);
    }
    linear[b] = first_order + 0.5F * interactions;
    ids += shape.fields;
    vectors += shape.stride;
    sums += dim;
  }
}

inline __attribute__((always_inline)) void add_gradients(const FactorizedShape& shape,
                                                         std::int64_t dim, const std::int64_t* ids,
                                                         const float* vectors, const float* sums,
                                                         const float* of_linear,
                                                         const float* of_vectors, float* of_table) {
  const std::int64_t* const end = ids + shape.batch * shape.fields;
  const std::int64_t beside = shape.stride - shape.fields * dim;
  for (std::int64_t b = 0; b < shape.batch; ++b, sums += dim, vectors += beside) {
    const float of = of_linear[b];
    for (std::int64_t f = 0; f < shape.fields; ++f, vectors += dim, of_vectors += dim, ++ids) {
      if (end - ids > kAhead) __builtin_prefetch(of_table + ids[kAhead] * (dim + 1), 1);
      float* __restrict const row = of_table + *ids * (dim + 1);
      row[0] += of;
      for (std::int64_t k = 0; k < dim; ++k) {
        row[k + 1] += of_vectors[k] + of * (sums[k] - vectors[k]);
      }
    }
    of_vectors += beside;
  }
}

// The clones of a function are seen outside of a library unless it has internal linkage.
ANTDT_VECTORISED void look_up_any(const FactorizedShape& shape, const float* table,
                                  const std::int64_t* ids, float* vectors, float* sums,
                                  float* linear) {
  if (shape.dim == kPiece) return look_up(shape, kPiece, table, ids, vectors, sums, linear);
  look_up(shape, shape.dim, table, ids, vectors, sums, linear);
}

ANTDT_VECTORISED void add_any_gradients(const FactorizedShape& shape, const std::int64_t* ids,
                                        const float* vectors, const float* sums,
                                        const float* of_linear, const float* of_vectors,
                                        float* of_table) {
  if (shape.dim == kPiece) {
    return add_gradients(shape, kPiece, ids, vectors, sums, of_linear, of_vectors, of_table);
  }
  add_gradients(shape, shape.dim, ids, vectors, sums, of_linear, of_vectors, of_table);
}

}  // namespace

void look_up_factorized(const FactorizedShape& shape, const float* table, const std::int64_t* ids,
                        float* vectors, float* sums, float* linear) {
  look_up_any(shape, table, ids, vectors, sums, linear);
}

void add_factorized_gradients(const FactorizedShape& shape, const std::int64_t* ids,
                              const float* vectors, const float* sums, const float* of_linear,
                              const float* of_vectors, float* of_table) {
  add_any_gradients(shape, ids, vectors, sums, of_linear, of_vectors, of_table);
}

}  // namespace antdt::trainer
