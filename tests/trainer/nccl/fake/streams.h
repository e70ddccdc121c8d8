// Streams as threads, and events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace fake {

// Ends the process: a rule of the real libraries was broken.
[[noreturn]] void broken(const char* rule);

class Stream {
 public:
  Stream();
  ~Stream();  // when all that was put there is done
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Runs `work` behind what is there. Returns its number, from 1.
  std::uint64_t put(std::function<void()> work);
  [[nodiscard]] bool has_done(std::uint64_t number);
  [[nodiscard]] std::uint64_t last();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t put_ = 0, done_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

// The stream of a handle; a null handle is the default stream. Ends the process for one that is
// none.
Stream& stream_of(void* handle);
// The device of the calling thread; -1 before cudaSetDevice.
int device_of_thread();

}  // namespace fake
