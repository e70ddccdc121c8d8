#include "trainer/torch/buffers.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace antdt::trainer {
namespace {

constexpr std::size_t kLineBytes = 64;

// The type's name in libantdt (launcher/model/model_content.cc).
std::optional<std::string> dtype_name(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return "float32";
    case torch::kFloat64:
      return "float64";
    case torch::kInt64:
      return "int64";
    case torch::kInt32:
      return "int32";
    case torch::kInt16:
      return "int16";
    case torch::kInt8:
      return "int8";
    case torch::kUInt8:
      return "uint8";
    case torch::kBool:
      return "bool";
    default:
      return {};
  }
}

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// A tensor like `like` in the bytes from `first` on, which keep `of` alive.
torch::Tensor view_of(const torch::Tensor& of, std::size_t first, const torch::Tensor& like) {
  return torch::from_blob(
      static_cast<std::byte*>(of.data_ptr()) + first, like.sizes(), [of](void*) {},
      like.options().requires_grad(false));
}

}  // namespace

Result<Buffers> Buffers::of(torch::nn::Module& module) {
  Buffers buffers;
  const auto keep = [&](const std::string& name, const torch::Tensor& tensor, bool changes) {
    if (tensor.defined() && tensor.numel() > 0)
      buffers.kept_.push_back({name, tensor, {}, changes});
  };
  for (const auto& item : module.named_buffers()) keep(item.key(), item.value(), true);
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) keep(item.key(), item.value(), false);
  }
  std::size_t bytes = 0;
  for (const Kept& kept : buffers.kept_) {
    if (!dtype_name(kept.now.scalar_type()) || !kept.now.is_contiguous()) {
      return fail(
          ErrorKind::kUsage,
          "the model's buffer '{}' is {}{}: it must be contiguous, of floats or whole numbers",
          kept.name, torch::toString(kept.now.scalar_type()),
          kept.now.is_contiguous() ? "" : " and not contiguous");
    }
    bytes += whole_lines(kept.now.nbytes());
  }
  buffers.settled_.resize(bytes);
  std::size_t first = 0, changing = 0;
  for (Kept& kept : buffers.kept_) {
    kept.first = first;
    kept.settled = torch::from_blob(buffers.settled_.data() + first, kept.now.sizes(),
                                    torch::TensorOptions(kept.now.scalar_type()));
    kept.settled.copy_(kept.now.detach());
    first += whole_lines(kept.now.nbytes());
    if (kept.changes) changing = first;
  }
  if (changing == 0) return buffers;
  buffers.array_ =
      torch::zeros({static_cast<std::int64_t>(changing)},
                   torch::TensorOptions(torch::kUInt8).device(buffers.kept_.front().now.device()));
  for (Kept& kept : buffers.kept_) {
    if (kept.changes) kept.place = view_of(buffers.array_, kept.first, kept.now);
  }
  buffers.gather();
  return buffers;
}

void Buffers::gather() {
  const torch::NoGradGuard no_grad;
  for (Kept& kept : kept_) {
    if (!kept.changes || kept.now.data_ptr() == kept.place.data_ptr()) continue;
    kept.place.copy_(kept.now.detach());
    kept.now.set_data(kept.place);
  }
}

Status Buffers::reduce(Collective& collective, double weight) {
  if (empty()) return {};
  sums_.assign(1, weight);
  gather();
  const torch::Tensor here = array_.defined() ? array_.cpu() : array_;
  for (const Kept& kept : kept_) {
    if (!kept.changes) continue;
    const auto count = static_cast<std::size_t>(kept.now.numel());
    const std::size_t first = sums_.size();
    sums_.resize(first + count);
    if (weight <= 0) continue;
    const torch::Tensor now = view_of(here, kept.first, kept.settled);
    const torch::Tensor change =
        (now.to(torch::kFloat64) - kept.settled.to(torch::kFloat64)) * weight;
    const torch::Tensor row = change.contiguous();
    std::copy_n(row.data_ptr<double>(), count, sums_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  const CountedAs parameters(collective.ledger(), Traffic::kParameters);
  Status status = collective.allreduce_sum(std::span(sums_));
  if (!status) sums_.clear();
  return status;
}

void Buffers::apply() {
  if (sums_.empty()) return;
  const torch::NoGradGuard no_grad;
  const double weight = sums_.front();
  std::size_t first = 1;
  for (Kept& kept : kept_) {
    if (!kept.changes) continue;
    const auto count = static_cast<std::size_t>(kept.now.numel());
    torch::Tensor change =
        torch::from_blob(sums_.data() + first, kept.now.sizes(), torch::kFloat64);
    first += count;
    if (weight > 0 && change.any().item<bool>()) {
      torch::Tensor value = kept.settled.to(torch::kFloat64) + change / weight;
      kept.settled.copy_(torch::is_floating_point(kept.now) ? value : value.round());
    }
  }
  restore();
}

void Buffers::apply_own() {
  if (!array_.defined()) return;
  gather();
  const torch::Tensor here = array_.cpu();
  std::memcpy(settled_.data(), here.data_ptr(), here.nbytes());
}

std::vector<double> Buffers::values() const {
  std::vector<double> all;
  for (const Kept& kept : kept_) {
    if (!kept.changes) continue;
    const torch::Tensor row = kept.settled.to(torch::kFloat64).contiguous();
    all.insert(all.end(), row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
  }
  return all;
}

void Buffers::replace(std::span<const double> values) {
  const double* next = values.data();
  for (Kept& kept : kept_) {
    if (!kept.changes) continue;
    torch::Tensor value = torch::empty(kept.settled.sizes(), torch::kFloat64);
    std::copy_n(next, value.numel(), value.data_ptr<double>());
    next += value.numel();
    kept.settled.copy_(torch::is_floating_point(kept.now) ? value : value.round());
  }
  restore();
}

void Buffers::restore() {
  sums_.clear();
  if (!array_.defined()) return;
  const torch::NoGradGuard no_grad;
  gather();
  array_.copy_(torch::from_blob(settled_.data(), array_.sizes(), torch::kUInt8));
}

void Buffers::replaced() {
  restore();
  const torch::NoGradGuard no_grad;
  for (Kept& kept : kept_) {
    if (!kept.changes) kept.now.copy_(kept.settled);
  }
}

std::vector<StateBuffer> Buffers::state() {
  std::vector<StateBuffer> all;
  for (Kept& kept : kept_) {
    all.push_back({kept.name,
                   *dtype_name(kept.now.scalar_type()),
                   kept.now.sizes().vec(),
                   {static_cast<std::byte*>(kept.settled.data_ptr()), kept.settled.nbytes()}});
  }
  return all;
}

}  // namespace antdt::trainer
