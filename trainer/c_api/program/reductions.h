// Sums over the members that the program asked for, done in their order by a thread of its own
// while the program goes on.
//
// A step: begin, open once the program may reduce, finish. Between finish and begin the collective
// is not used here.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/collective/collective.h"

namespace antdt::capi {

class Reductions {
 public:
  Reductions();
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  // ---- the driver's thread
  void begin(trainer::Collective& collective);
  void open();
  // Nothing more is taken; waits for what was. The first error ends the step: nothing after it is
  // tried.
  [[nodiscard]] Status finish();

  // ---- the program's threads
  // ANTDT_F32 or ANTDT_F64. kUsage: not now. kAborted: it cannot be any more.
  [[nodiscard]] Status add(void* values, std::uint64_t count, std::int32_t dtype);
  enum class Waited : std::uint8_t { kDone, kNotYet, kBroken };
  [[nodiscard]] Waited wait(Duration timeout);
  [[nodiscard]] bool idle() const;

 private:
  struct Sum {
    void* values = nullptr;
    std::uint64_t count = 0;
    std::int32_t dtype = 0;
  };
  void run();
  [[nodiscard]] bool idle_locked() const { return sums_.empty() && !busy_; }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  trainer::Collective* collective_ = nullptr;
  std::deque<Sum> sums_;
  bool busy_ = false;
  bool open_ = false;
  bool quit_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace antdt::capi
