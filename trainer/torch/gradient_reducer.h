// Reduces gradients over the members while the backward pass still computes.
//
// The flat gradient is cut into buckets of whole parameters, in the order in which backward
// completes them. A hook on each parameter reports when it is complete; when a whole bucket is, a
// communication thread reduces it. The thread takes buckets strictly in order, so all members run
// the same operations in whatever order their backward passes complete (as in PyTorch's
// DistributedDataParallel: Li et al., VLDB 2020).
//
// One step: begin, (arm, backward)*, finish. Hooks that fire while it is not armed (in all
// micro-batches but the last) do nothing.
//
// The gradient of one parameter may consist of rows (sparse_rows.h): it is a bucket of its own.
// Before the first bucket members count their rows, while the last micro-batch is computed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/wire/worker_messages.h"
#include "trainer/collective/collective.h"
#include "trainer/torch/parameters.h"
#include "trainer/torch/sparse_rows.h"

namespace antdt::trainer {

// The size of a bucket: large enough for the bandwidth of the ring, small enough that the first one
// is sent early. Equal on all members, whatever they compute on, because they sum the same buckets.
inline constexpr std::size_t kBucketBytes = 1U << 20U;

// Floats of the flat gradient.
struct GradientRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// How buckets are summed where the flat gradient is not in the host's memory. `bucket` counts from
// 0.
class BucketReduction {
 public:
  virtual ~BucketReduction() = default;
  // A step begins, in which no bucket is complete.
  virtual void begin(Collective& collective, std::size_t buckets) = 0;
  // The last gradient of the bucket was put into the device's queue. On the thread of backward,
  // which waits for it. Not called for every bucket.
  virtual void completed(std::size_t bucket, GradientRange range) = 0;
  // Sums it over the members. On the reducer's thread, in the order of the buckets.
  [[nodiscard]] virtual Status reduce(Collective& collective, std::size_t bucket,
                                      GradientRange range) = 0;
};

class GradientReducer {
 public:
  struct Parts {
    // A bucket has at least one parameter, and at most so many bytes if it has several.
    std::size_t bucket_bytes = kBucketBytes;
    // The entry that members may sum as rows; empty: they do not count rows.
    std::optional<std::size_t> table = {};
    // The rows of the table, touched before backward; null: this member has the whole table.
    SparseRows* rows = nullptr;
    // Sums the buckets; null: they are in the host's memory.
    BucketReduction* elsewhere = nullptr;
  };
  // `parameters` and what `parts` points to must outlive this object.
  GradientReducer(const FlatParameters& parameters, const Parts& parts);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  void begin(Collective& collective);
  // The next backward pass is the step's last one. All its rows are touched.
  void arm();
  // Reduces what has not been reduced, and waits for all. The first error in a bucket ends the
  // step: no later bucket is tried.
  [[nodiscard]] Status finish();

  [[nodiscard]] std::size_t buckets() const { return buckets_.size(); }
  // How the table was summed in all steps so far. Not between begin() and finish().
  [[nodiscard]] const wire::TableSums& table_sums() const { return table_sums_; }

 private:
  enum class Work { kSum, kCountRows, kSumRows };
  struct Bucket {
    Work work = Work::kSum;
    std::size_t first = 0;  // offset in the flat gradient
    std::size_t count = 0;
    std::size_t parameters = 0;
    std::size_t incomplete = 0;  // how many of them are incomplete in this step
  };
  void make_buckets(const Parts& parts);
  [[nodiscard]] Status reduce(std::size_t bucket, Collective& collective);
  void count_table_sum();
  void install_hooks();
  void on_complete(std::size_t parameter);
  void communicate();
  [[nodiscard]] bool work_is_ready() const;

  const FlatParameters& parameters_;
  SparseRows* rows_;
  BucketReduction* elsewhere_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // bucket of each parameter
  // Keeps alive the nodes with the hooks.
  struct Hooks;
  std::unique_ptr<Hooks> hooks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Collective* collective_ = nullptr;  // collective of the present step
  bool armed_ = false;
  bool stopping_ = false;
  std::size_t next_bucket_ = 0;  // the first that has not been reduced
  Status status_;
  wire::TableSums table_sums_;
  std::thread thread_;
};

}  // namespace antdt::trainer
