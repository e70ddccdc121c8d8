// Interactions of fields: the parts of the click models for which LibTorch has no layers.
#pragma once

#include <torch/torch.h>

namespace antdt::trainer {

// One layer of a compressed interaction network (Lian, Zhou, Zhang, Chen, Xie and Sun,
// "xDeepFM: combining explicit and implicit feature interactions for recommender
// systems", KDD 2018, arXiv 1803.05170, equation 6):
//   out[b,d,h] = sum over i, j of weight[h, i * fields + j] * maps[b,d,i] * vectors[b,d,j]
// maps: batch x dim x maps, of the layer before (the first: `vectors` themselves)
// vectors: batch x dim x fields, the embeddings; weight: maps of this layer x (maps * fields)
// Answers batch x dim x maps of this layer.
//
// The products are made for some rows at a time, once in each direction: memory beyond
// arguments and results does not grow with the batch.
[[nodiscard]] torch::Tensor compressed_interactions(const torch::Tensor& maps,
                                                    const torch::Tensor& vectors,
                                                    const torch::Tensor& weight);

// vectors: batch x n x dim. Returns batch x (n * (n - 1) / 2): the inner products of each vector
// with those before it, <v1,v0>, <v2,v0>, <v2,v1>, …; none with itself.
[[nodiscard]] torch::Tensor pairwise_products(const torch::Tensor& vectors);

}  // namespace antdt::trainer
