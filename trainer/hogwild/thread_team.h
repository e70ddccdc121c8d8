// Threads that do the parts of one piece of work at the same time, again and again.
//
//   waiting ──run()──> working ──(each has done its part)──> waiting
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace antdt::hogwild {

class ThreadTeam {
 public:
  // `size`: at least 1, the calling thread included. `begin` has been called once on each other
  // thread when the constructor returns. These threads have all signals blocked.
  explicit ThreadTeam(
      std::size_t size, const std::function<void()>& begin = [] {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  [[nodiscard]] std::size_t size() const { return threads_.size() + 1; }
  // Calls part(0) on the calling thread and part(1) to part(size - 1) on the others, always the
  // same part on the same thread. Returns when all are done; the caller then sees what they wrote,
  // and they see what the caller wrote before. A part must not throw.
  void run(const std::function<void(std::size_t)>& part);

 private:
  void work(std::size_t index);

  std::mutex mutex_;
  std::condition_variable begins_, done_;
  const std::function<void(std::size_t)>* part_ = nullptr;
  std::uint64_t round_ = 0;
  std::size_t busy_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace antdt::hogwild
