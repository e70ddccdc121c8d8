// The functions of the CUDA runtime.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "orders.h"
#include "streams.h"

namespace fake {
namespace {

struct Event {
  Stream* stream = nullptr;
  std::uint64_t number = 0;
};

constexpr int kSuccess = 0, kInvalidValue = 1, kNoDevice = 100, kNotReady = 600;
thread_local int own_device = -1;
thread_local int last_error = kSuccess;
std::mutex streams_mutex;
std::set<Stream*> streams;

}  // namespace

void broken(const char* rule) {
  std::fprintf(stderr, "FAKE NCCL: %s\n", rule);
  std::fflush(stderr);
  std::abort();
}

Stream::Stream() : thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t Stream::put(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
  return ++put_;
}

bool Stream::has_done(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

std::uint64_t Stream::last() {
  const std::lock_guard lock(mutex_);
  return put_;
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    const auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    ++done_;
  }
}

// Never destroyed: what hangs in it would hold up the end of the process.
Stream& stream_of(void* handle) {
  static Stream* const default_stream = new Stream;
  if (handle == nullptr) return *default_stream;
  const std::lock_guard lock(streams_mutex);
  auto* const stream = static_cast<Stream*>(handle);
  if (!streams.contains(stream)) broken("a stream is used that does not exist");
  return *stream;
}

int device_of_thread() { return own_device; }

namespace {
// LibTorch asks for the thread's last error behind each kernel that it launches.
void other_code_launches_a_kernel() {
  if (last_error != kSuccess) broken("an error of this thread is left to whoever asks next");
}
}  // namespace

}  // namespace fake

using fake::kInvalidValue;
using fake::kNoDevice;
using fake::kNotReady;
using fake::kSuccess;

extern "C" {

int cudaRuntimeGetVersion(int* version) {
  *version = fake::orders().cuda;
  return kSuccess;
}

const char* cudaGetErrorString(int code) {
  return code == kNoDevice ? "no CUDA-capable device is detected" : "invalid argument";
}

int cudaGetDeviceCount(int* count) {
  *count = fake::orders().devices;
  return *count == 0 ? kNoDevice : kSuccess;
}

int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (device >= fake::orders().devices) return kInvalidValue;
  const std::string address = fake::orders().device;
  std::snprintf(text, static_cast<std::size_t>(length), "%s",
                address == "own" ? std::to_string(getpid()).c_str() : address.c_str());
  return kSuccess;
}

int cudaSetDevice(int device) {
  if (device >= fake::orders().devices) return kInvalidValue;
  fake::own_device = device;
  return kSuccess;
}

int cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? 2 : kSuccess;
}

int cudaFree(void* memory) {
  std::free(memory);
  return kSuccess;
}

int cudaStreamCreateWithFlags(void** stream, unsigned) {
  auto* const made = new fake::Stream;
  const std::lock_guard lock(fake::streams_mutex);
  fake::streams.insert(made);
  *stream = made;
  return kSuccess;
}

int cudaStreamDestroy(void* stream) {
  {
    const std::lock_guard lock(fake::streams_mutex);
    if (fake::streams.erase(static_cast<fake::Stream*>(stream)) == 0) return kInvalidValue;
  }
  delete static_cast<fake::Stream*>(stream);
  return kSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  if (kind != 4) return kInvalidValue;
  fake::other_code_launches_a_kernel();
  fake::stream_of(stream).put([=] { std::memcpy(to, from, bytes); });
  return kSuccess;
}

int cudaEventCreateWithFlags(void** event, unsigned) {
  *event = new fake::Event;
  return kSuccess;
}

int cudaEventDestroy(void* event) {
  delete static_cast<fake::Event*>(event);
  return kSuccess;
}

int cudaEventRecord(void* event, void* stream) {
  auto* const marked = static_cast<fake::Event*>(event);
  marked->stream = &fake::stream_of(stream);
  marked->number = marked->stream->last();
  return kSuccess;
}

int cudaEventQuery(void* event) {
  const auto* const marked = static_cast<fake::Event*>(event);
  if (marked->stream == nullptr) return kSuccess;
  if (marked->stream->has_done(marked->number)) return kSuccess;
  return fake::last_error = kNotReady;
}

int cudaGetLastError() { return std::exchange(fake::last_error, kSuccess); }

}  // extern "C"
