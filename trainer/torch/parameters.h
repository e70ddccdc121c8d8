// The parameters of a model in one flat array, and their gradients in another.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace antdt::trainer {

// An array of zeros; in the host's memory in huge pages.
[[nodiscard]] torch::Tensor flat_zeros(std::size_t count, torch::Device device = torch::kCPU);

// Made from parameters in the order in which forward uses them. They are stored in the reverse
// order, in which backward completes their gradients. Each begins on a cache line; the gaps stay
// zero. The parameters' data and gradients permanently become views of the arrays.
class FlatParameters {
 public:
  struct Entry {
    std::string name;
    torch::Tensor parameter;
    std::size_t first = 0;  // offset in the flat arrays, in floats
    std::size_t count = 0;
  };

  // The parameters of a model that are trained. kUsage: there is none, or one of them is not
  // float32.
  [[nodiscard]] static Result<std::vector<std::pair<std::string, torch::Tensor>>> trained_of(
      const torch::nn::Module& module);

  // How many floats an array of these parameters needs, gaps included.
  [[nodiscard]] static std::size_t floats_of(
      const std::vector<std::pair<std::string, torch::Tensor>>& parameters);

  FlatParameters() = default;
  // `device`: where the arrays lie, and the parameters already do.
  explicit FlatParameters(std::vector<std::pair<std::string, torch::Tensor>> in_order_of_use,
                          torch::Device device = torch::kCPU);

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  // Place of the entry with this name among entries().
  [[nodiscard]] std::optional<std::size_t> place_of(const std::string& name) const;
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(values_.numel()); }
  // In the host's memory only.
  [[nodiscard]] std::span<float> values() const { return span_of(values_); }
  [[nodiscard]] std::span<float> gradients() const { return span_of(gradients_); }
  // Wherever they lie.
  [[nodiscard]] const torch::Tensor& value_array() const { return values_; }
  [[nodiscard]] const torch::Tensor& gradient_array() const { return gradients_; }

 private:
  static std::span<float> span_of(const torch::Tensor& t) {
    return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())};
  }
  torch::Tensor values_ = torch::zeros({0});
  torch::Tensor gradients_ = torch::zeros({0});
  std::vector<Entry> entries_;
};

}  // namespace antdt::trainer
