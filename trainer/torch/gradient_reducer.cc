#include "trainer/torch/gradient_reducer.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <utility>

namespace antdt::trainer {
namespace {

// Called when a parameter's gradient in this backward pass is complete.
class CompletionHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit CompletionHook(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

struct GradientReducer::Hooks {
  struct Installed {
    // a pointer of another kind in LibTorch 2
    decltype(torch::autograd::impl::grad_accumulator(std::declval<torch::Tensor>())) node;
    std::uintptr_t key = 0;
  };
  std::vector<Installed> installed;
};

GradientReducer::GradientReducer(const FlatParameters& parameters, const Parts& parts)
    : parameters_(parameters),
      rows_(parts.rows),
      elsewhere_(parts.elsewhere),
      hooks_(std::make_unique<Hooks>()) {
  make_buckets(parts);
  install_hooks();
  thread_ = std::thread([this] { communicate(); });
}

GradientReducer::~GradientReducer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Hooks::Installed& hook : hooks_->installed) hook.node->del_post_hook(hook.key);
}

void GradientReducer::make_buckets(const Parts& parts) {
  const std::size_t limit = parts.bucket_bytes / sizeof(float);
  // Complete when the last micro-batch is known (arm).
  if (parts.table) buckets_.push_back({.work = Work::kCountRows, .parameters = 1});
  for (std::size_t i = 0; i < parameters_.entries().size(); ++i) {
    const FlatParameters::Entry& entry = parameters_.entries()[i];
    const std::size_t end = entry.first + entry.count;
    const bool is_rows = i == parts.table;
    if (buckets_.empty() || is_rows || buckets_.back().work != Work::kSum ||
        end - buckets_.back().first > limit) {
      buckets_.push_back({.work = is_rows ? Work::kSumRows : Work::kSum, .first = entry.first});
    }
    buckets_.back().count = end - buckets_.back().first;
    ++buckets_.back().parameters;
    bucket_of_.push_back(buckets_.size() - 1);
  }
}

void GradientReducer::install_hooks() {
  for (std::size_t i = 0; i < parameters_.entries().size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(parameters_.entries()[i].parameter);
    const auto key =
        node->add_post_hook(std::make_unique<CompletionHook>([this, i] { on_complete(i); }));
    hooks_->installed.push_back({std::move(node), key});
  }
}

void GradientReducer::begin(Collective& collective) {
  const std::lock_guard lock(mutex_);
  if (elsewhere_ != nullptr) elsewhere_->begin(collective, buckets_.size());
  for (Bucket& bucket : buckets_) bucket.incomplete = bucket.parameters;
  collective_ = &collective;
  armed_ = false;
  next_bucket_ = 0;
  status_ = {};
}

void GradientReducer::arm() {
  const std::lock_guard lock(mutex_);
  armed_ = true;
  if (buckets_.empty() || buckets_.front().work != Work::kCountRows) return;
  buckets_.front().incomplete = 0;
  changed_.notify_all();
}

void GradientReducer::on_complete(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  if (!armed_) return;
  Bucket& bucket = buckets_[bucket_of_[parameter]];
  if (bucket.incomplete == 0 || --bucket.incomplete > 0) return;
  if (elsewhere_ != nullptr) {
    elsewhere_->completed(bucket_of_[parameter], {bucket.first, bucket.count});
  }
  changed_.notify_all();
}

Status GradientReducer::finish() {
  std::unique_lock lock(mutex_);
  if (collective_ == nullptr) return status_;
  for (Bucket& bucket : buckets_) bucket.incomplete = 0;
  changed_.notify_all();
  changed_.wait(lock, [&] { return next_bucket_ == buckets_.size(); });
  collective_ = nullptr;
  armed_ = false;
  return status_;
}

bool GradientReducer::work_is_ready() const {
  return collective_ != nullptr && next_bucket_ < buckets_.size() &&
         buckets_[next_bucket_].incomplete == 0;
}

Status GradientReducer::reduce(std::size_t index, Collective& collective) {
  const Bucket& bucket = buckets_[index];
  if (bucket.work == Work::kCountRows) {
    return rows_ != nullptr ? rows_->count(collective) : count_as_whole(collective);
  }
  if (bucket.work == Work::kSumRows && rows_ != nullptr) return rows_->reduce(collective);
  if (elsewhere_ != nullptr) {
    return elsewhere_->reduce(collective, index, {bucket.first, bucket.count});
  }
  return collective.allreduce_sum(parameters_.gradients().subspan(bucket.first, bucket.count));
}

void GradientReducer::count_table_sum() {
  ++(rows_ == nullptr || rows_->is_whole() ? table_sums_.as_whole : table_sums_.as_rows);
}

void GradientReducer::communicate() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || work_is_ready(); });
    if (stopping_) return;
    const std::size_t bucket = next_bucket_;
    Collective& collective = *collective_;
    lock.unlock();
    Status status = reduce(bucket, collective);
    lock.lock();
    if (status) {
      if (buckets_[bucket].work == Work::kSumRows && collective.size() > 1) count_table_sum();
      ++next_bucket_;
    } else {
      status_ = std::move(status);
      next_bucket_ = buckets_.size();
    }
    changed_.notify_all();
  }
}

}  // namespace antdt::trainer
