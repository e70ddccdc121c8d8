// Look-ups in embedding tables that leave gradients in place.
//
// The backward passes add into the rows of the table's gradient (which must exist: see
// FlatParameters) and pass nothing to autograd, so no dense temporary of the table's size is made.
// The table's completion hooks still fire.
#pragma once

#include <torch/torch.h>

namespace antdt::trainer {

// table: rows x width floats; ids: batch x fields, each below rows. Returns batch x fields x width.
[[nodiscard]] torch::Tensor embedding_rows(const torch::Tensor& table, const torch::Tensor& ids);

// Column 0 of the table is a first-order weight, the others an embedding vector v. Returns
//   linear: batch; the sum of a row's first-order weights, plus its second-order
//     interactions sum over pairs f < g of <v_f, v_g>, computed as
//     (|sum v|^2 - sum |v|^2) / 2 (Rendle, "Factorization machines", ICDM 2010)
//   vectors: batch x (fields * (width - 1) + n), the embeddings side by side and, behind them,
//     `beside`, batch x n, which gets no gradient: written there at once, it costs no pass over
//     the embeddings and their gradients
struct FactorizedFields {
  torch::Tensor linear;
  torch::Tensor vectors;
};
[[nodiscard]] FactorizedFields factorized_fields(const torch::Tensor& table,
                                                 const torch::Tensor& ids,
                                                 const torch::Tensor& beside);

}  // namespace antdt::trainer
