#include "trainer/torch/threads/compute_threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace antdt::trainer {
namespace {

// Other BLAS libraries do not have these functions: they follow LibTorch's setting.
template <class F>
F* of_openblas(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

bool openblas_has_own_pool() {
  constexpr int kPthreads = 1;  // 0: one thread, 2: OpenMP's, as LibTorch
  const auto kind = of_openblas<int()>("openblas_get_parallel");
  return kind != nullptr && kind() == kPthreads;
}

}  // namespace

void set_compute_threads(PoolThreads threads) {
  if (const auto set = of_openblas<void(int)>("openblas_set_num_threads")) {
    set(static_cast<int>(threads.blas));
  }
  at::set_num_threads(static_cast<int>(threads.torch));
}

ComputeThreads::ComputeThreads(std::uint32_t most) : trial_(most, openblas_has_own_pool()) {
  set_compute_threads(trial_.now());
}

void ComputeThreads::end() {
  if (!trial_.settled()) took_ += clock_.now() - began_;
}

void ComputeThreads::finish_step() {
  if (trial_.settled()) return;
  const PoolThreads before = trial_.now();
  trial_.step(took_, records_);
  forget_step();
  if (trial_.now() != before) set_compute_threads(trial_.now());
}

void ComputeThreads::forget_step() {
  took_ = {};
  records_ = 0;
}

}  // namespace antdt::trainer
