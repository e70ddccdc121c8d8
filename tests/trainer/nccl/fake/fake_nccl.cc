// The functions of NCCL.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "exchange.h"
#include "orders.h"
#include "streams.h"
#include "trainer/nccl/half.h"

namespace fake {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSuccess = 0, kUnhandledCudaError = 1, kInvalidArgument = 4, kInProgress = 7;

struct UniqueId {
  char internal[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

struct Comm {
  Comm(std::unique_ptr<Exchange> with, int members)
      : orders(fake::orders()), size(members), exchange(std::move(with)) {}
  const Orders orders;
  const int size;
  const std::unique_ptr<Exchange> exchange;
  std::atomic<int> state = kInProgress;  // what ncclCommGetAsyncError tells
  std::atomic<bool> aborted = false;
  std::atomic<bool> inside = false;  // a thread is in a call
  std::thread background;            // forms it, or puts an operation into its stream
  int operations = 0;
  std::atomic<int> running = 0;  // operations in streams

  [[nodiscard]] bool goes_on() {
    if (aborted && !orders.kernel_hangs) return false;
    if (orders.sees_death && state == kSuccess && !exchange->all_live()) state = 6;
    return true;
  }
  // Does nothing until the abort.
  void hang() {
    while (goes_on()) std::this_thread::sleep_for(microseconds(50));
  }
};

std::mutex comms_mutex;
std::set<Comm*> comms;  // those that live
thread_local std::string last_error;

int failed(int code, const std::string& text) {
  last_error = text;
  return code;
}

// As NCCL does before its first work: files add variables, and override none.
void read_configuration_files() {
  const char* const file = std::getenv("NCCL_CONF_FILE");
  std::ifstream lines(file == nullptr ? "" : file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('=');
    if (at != std::string::npos) setenv(line.substr(0, at).c_str(), line.c_str() + at + 1, 0);
  }
}

bool is_told_to_block() {
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  return blocking != nullptr && std::strtoll(blocking, nullptr, 0) == 1;
}

// A call that never returns. Nobody waits for what it has begun.
[[noreturn]] void hang(Comm* comm) {
  if (comm->background.joinable()) comm->background.detach();
  while (true) std::this_thread::sleep_for(milliseconds(10));
}

// One thread is in a call of a living communicator.
class Inside {
 public:
  explicit Inside(void* handle) : comm_(static_cast<Comm*>(handle)) {
    {
      const std::lock_guard lock(comms_mutex);
      if (!comms.contains(comm_)) broken("a communicator is used after its end");
    }
    if (comm_->inside.exchange(true)) broken("two threads are in one communicator");
    if (comm_->orders.call_us > 0) std::this_thread::sleep_for(microseconds(comm_->orders.call_us));
  }
  ~Inside() {
    if (comm_ != nullptr) comm_->inside = false;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  Comm* operator->() const { return comm_; }
  // Ends the communicator.
  void end() {
    {
      const std::lock_guard lock(comms_mutex);
      comms.erase(comm_);
    }
    if (comm_->background.joinable()) comm_->background.join();
    // What runs on the device still reads the communicator.
    if (comm_->running == 0) delete comm_;
    comm_ = nullptr;
  }

 private:
  Comm* comm_;
};

void form(Comm* comm) {
  if (comm->orders.init_hangs) return comm->hang();
  if (!comm->exchange->meet([comm] { return comm->goes_on(); })) return;
  std::this_thread::sleep_for(milliseconds(comm->orders.init_ms));
  comm->state = comm->orders.init_error;
}

template <class T, class Read, class Write>
void add_up(Comm* comm, T* out, std::size_t count, Read read, Write write) {
  for (std::size_t i = 0; i < count; ++i) {
    auto sum = read(reinterpret_cast<const T*>(comm->exchange->part(0))[i]);
    for (int rank = 1; rank < comm->size; ++rank) {
      sum += read(reinterpret_cast<const T*>(comm->exchange->part(rank))[i]);
    }
    out[i] = write(sum);
  }
}

void reduce(Comm* comm, void* data, std::size_t count, int type) {
  const std::size_t each = type == 8 ? 8 : type == 7 ? 4 : 2;
  const auto as_is = [](auto value) { return value; };
  for (std::size_t at = 0; at < count; at += kPieceBytes / each) {
    const std::size_t here = std::min(kPieceBytes / each, count - at);
    std::byte* const bytes = static_cast<std::byte*>(data) + at * each;
    if (!comm->exchange->gather(bytes, here * each, [comm] { return comm->goes_on(); })) return;
    if (type == 8) add_up(comm, reinterpret_cast<double*>(bytes), here, as_is, as_is);
    if (type == 7) add_up(comm, reinterpret_cast<float*>(bytes), here, as_is, as_is);
    auto* const halves = reinterpret_cast<std::uint16_t*>(bytes);
    if (type == 6) add_up(comm, halves, here, antdt::nccl::from_float16, antdt::nccl::to_float16);
    if (type == 9) add_up(comm, halves, here, antdt::nccl::from_bfloat16, antdt::nccl::to_bfloat16);
  }
}

// Puts an operation into its stream, now or after a while.
int enqueue(Inside& comm, void* stream_handle, std::function<void(Comm*)> work) {
  if (comm->state == kInProgress) {
    return failed(kInvalidArgument, "the previous operation has not returned ncclSuccess");
  }
  if (device_of_thread() < 0) return failed(kUnhandledCudaError, "the thread has no device");
  if (comm->state != kSuccess) return comm->state;
  Comm* const own = comm.operator->();
  if (own->orders.call_hangs) {
    if (!own->orders.hangs_mark.empty()) std::ofstream mark(own->orders.hangs_mark);
    hang(own);
  }
  const int number = ++own->operations;
  Stream& stream = stream_of(stream_handle);
  const auto put = [own, number, &stream, work = std::move(work)] {
    ++own->running;
    stream.put([own, number, work] {
      if (number == own->orders.error_op) {
        const std::string& when = own->orders.error_when;
        while (own->goes_on() && !when.empty() && !std::filesystem::exists(when)) {
          std::this_thread::yield();
        }
        own->state = own->orders.error;
      }
      if (number == own->orders.hang_op || number == own->orders.error_op) {
        own->hang();
      } else {
        work(own);
      }
      --own->running;
    });
  };
  if (own->orders.enqueue_ms == 0) {
    put();
    return kSuccess;
  }
  own->state = kInProgress;
  if (own->background.joinable()) own->background.join();
  own->background = std::thread([own, put] {
    std::this_thread::sleep_for(milliseconds(own->orders.enqueue_ms));
    if (own->aborted) return;
    put();
    own->state = kSuccess;
  });
  return kInProgress;
}

}  // namespace
}  // namespace fake

using fake::Comm;
using fake::Inside;
using fake::kInProgress;
using fake::kInvalidArgument;
using fake::kSuccess;
using fake::kUnhandledCudaError;

extern "C" {

int ncclGetVersion(int* version) {
  *version = fake::orders().version;
  return kSuccess;
}

const char* ncclGetErrorString(int) { return "an error of the fake library"; }
const char* ncclGetLastError(void*) { return fake::last_error.c_str(); }

int ncclGetUniqueId(fake::UniqueId* id) {
  if (const int error = fake::orders().id_error; error != 0) {
    return fake::failed(error, "no socket interface found");
  }
  fake::read_configuration_files();
  std::random_device random;
  std::snprintf(id->internal, sizeof(id->internal), "/fake-gpus-%d-%08x%08x", getpid(), random(),
                random());
  fake::Exchange::create(id->internal);
  return kSuccess;
}

int ncclCommInitRankConfig(void** handle, int size, fake::UniqueId id, int rank,
                           fake::Config* config) {
  *handle = nullptr;
  if (config->magic != 0xcafebeef || config->size != 24 || config->version != 21400) {
    return fake::failed(kInvalidArgument, "ncclConfig_t is not initialised");
  }
  fake::read_configuration_files();
  if (config->blocking != 0 || fake::is_told_to_block())
    fake::broken("the communicator is blocking");
  if (fake::device_of_thread() < 0) {
    return fake::failed(kUnhandledCudaError, "the thread has no device");
  }
  auto exchange = fake::Exchange::open(id.internal, rank, size);
  if (!exchange) return fake::failed(2, "the socket of the root refuses connections");
  auto* const comm = new Comm(std::move(exchange), size);
  {
    const std::lock_guard lock(fake::comms_mutex);
    fake::comms.insert(comm);
  }
  comm->background = std::thread([comm] { fake::form(comm); });
  if (!comm->orders.marks.empty()) {
    std::ofstream mark(comm->orders.marks + std::to_string(getpid()));
  }
  *handle = comm;
  return kInProgress;
}

int ncclCommGetAsyncError(void* handle, int* state) {
  const Inside comm(handle);
  *state = comm->state;
  if (*state != kSuccess && *state != kInProgress) fake::last_error = "ordered by a test";
  return kSuccess;
}

#ifndef FAKE_WITHOUT_ABORT
int ncclCommAbort(void* handle) {
  if (handle == nullptr) return kSuccess;
  Inside comm(handle);
  if (comm->orders.abort_hangs) fake::hang(comm.operator->());
  comm->aborted = true;
  comm.end();
  return kSuccess;
}
#endif

int ncclCommFinalize(void* handle) {
  const Inside comm(handle);
  if (comm->state == kInProgress) return kInvalidArgument;
  comm->state = kInProgress;
  Comm* const own = comm.operator->();
  if (own->background.joinable()) own->background.join();
  own->background = std::thread([own] {
    while (own->running > 0 && own->goes_on()) std::this_thread::yield();
    if (!own->aborted) own->state = kSuccess;
  });
  return kInProgress;
}

int ncclCommDestroy(void* handle) {
  Inside comm(handle);
  if (comm->state != kSuccess) fake::broken("a communicator is destroyed before it is finalized");
  comm.end();
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                  void* handle, void* stream) {
  Inside comm(handle);
  if (from != to || operation != 0) return kInvalidArgument;
  return fake::enqueue(comm, stream, [=](Comm* own) { fake::reduce(own, to, count, type); });
}

int ncclSend(const void* data, std::size_t count, int type, int peer, void* handle, void* stream) {
  Inside comm(handle);
  if (type != 1) return kInvalidArgument;
  return fake::enqueue(comm, stream, [=](Comm* own) {
    static_cast<void>(own->exchange->send(peer, static_cast<const std::byte*>(data), count,
                                          [own] { return own->goes_on(); }));
  });
}

int ncclRecv(void* data, std::size_t count, int type, int peer, void* handle, void* stream) {
  Inside comm(handle);
  if (type != 1) return kInvalidArgument;
  return fake::enqueue(comm, stream, [=](Comm* own) {
    static_cast<void>(own->exchange->receive(peer, static_cast<std::byte*>(data), count,
                                             [own] { return own->goes_on(); }));
  });
}

}  // extern "C"
