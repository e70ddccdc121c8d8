// Groups of a test whose members are processes with the tests' own NCCL.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "trainer/collective/prepare.h"
#include "trainer/nccl/nccl_collective.h"

namespace antdt::nccl {

using trainer::Collective;
using trainer::DeviceBytes;
using trainer::DeviceSpan;
using trainer::DeviceType;

// What the processes of a test share.
struct Cell {
  std::atomic<bool> ready = false;
  std::atomic<int> note = 0;  // for the test's own use
  char address[64] = {};
  char trouble[1024] = {};  // what went wrong in the process
};

// How a member is prepared.
struct MemberSetup {
  std::string orders = "device=own";  // fake/orders.h
  bool required = true;
  bool encrypt = false;
  bool holds_state = false;
  std::string host = "host-a";
  std::string nccl = ANTDT_FAKE_NCCL_LIBRARY;
  std::string nccl_conf = {};  // a configuration file of NCCL on the host
  communicator::Patience patience = {};
};

// In the process of a member.
struct Member {
  std::uint32_t rank = 0, size = 0;
  std::vector<Cell*> cells;
  Cell& cell;
  MemberSetup setup;
  Result<std::shared_ptr<Backend>> backend;
  std::string fallback = {};  // why the group does without NCCL
  std::unique_ptr<trainer::CollectiveBuilder> builder = {};

  [[nodiscard]] static BackendOptions options(const MemberSetup& setup) {
    return {setup.nccl, ANTDT_FAKE_NCCL_LIBRARY, 0, accelerator::own_environment()};
  }
  // Begins a generation: listens, and tells the others where.
  [[nodiscard]] Status prepare() {
    NcclOptions wanted{.backend = backend,
                       .required = setup.required,
                       .encrypt = setup.encrypt,
                       .patience = setup.patience,
                       .place = {setup.host, setup.host}};
    wanted.on_fallback = [this](const std::string& why) { fallback = why; };
    const auto inner = [](const trainer::Seat& seat) {
      return trainer::prepare_collective(seat.rank, seat.size,
                                         {.hostname = "127.0.0.1", .interface = ""});
    };
    ANTDT_TRY(builder, prepare_nccl({rank, size, setup.holds_state}, inner, std::move(wanted)));
    builder->address().at.copy(cell.address, sizeof(cell.address) - 1);
    cell.ready = true;
    return {};
  }
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect() {
    std::vector<trainer::MemberAddress> addresses;
    for (Cell* const other : cells) {
      while (!other->ready) std::this_thread::yield();
      addresses.push_back({.at = other->address, .sharing = {}});
    }
    return builder->connect(addresses, {crypto::Secret().derive("secret"), "job-1", Generation{3}});
  }
  [[nodiscard]] Result<std::unique_ptr<Collective>> form() {
    ANTDT_RETURN_IF_ERROR(prepare());
    return connect();
  }
};

// What a member does in its process. Returns what went wrong; "": nothing.
using Body = std::function<std::string(Member&)>;

inline void await(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}

class Group {
 public:
  Group(std::vector<MemberSetup> setups, const Body& body) : setups_(std::move(setups)) {
    const std::size_t bytes = sizeof(Cell) * setups_.size();
    cells_ = static_cast<Cell*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    for (std::size_t rank = 0; rank < setups_.size(); ++rank) new (&cells_[rank]) Cell;
    for (std::uint32_t rank = 0; rank < setups_.size(); ++rank) start(rank, body);
  }
  ~Group() {
    for (const auto& pid : pids_) {
      if (!pid) continue;
      kill(*pid, SIGKILL);
      waitpid(*pid, nullptr, 0);
    }
    remove_memory();
    munmap(cells_, sizeof(Cell) * setups_.size());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Cell& cell(std::uint32_t rank) { return cells_[rank]; }
  void kill_member(std::uint32_t rank) {
    kill(pids_[rank].value(), SIGKILL);
    waitpid(*pids_[rank], nullptr, 0);
    pids_[rank].reset();
  }
  // Waits for the process's end. What went wrong there; "": nothing.
  std::string result(std::uint32_t rank) {
    int status = 0;
    waitpid(pids_[rank].value(), &status, 0);
    pids_[rank].reset();
    if (cells_[rank].trouble[0] != '\0') return cells_[rank].trouble;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
    return "the process ended with status " + std::to_string(status);
  }
  void expect_all_well() {
    for (std::uint32_t rank = 0; rank < setups_.size(); ++rank) {
      if (!pids_[rank]) continue;
      EXPECT_EQ(result(rank), "") << "rank " << rank;
    }
  }

 private:
  void start(std::uint32_t rank, const Body& body) {
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot fork");
    if (pid > 0) {
      pids_.emplace_back(pid);
      all_pids_.push_back(pid);
      return;
    }
    alarm(60);
    std::signal(SIGPIPE, SIG_IGN);  // as every program of ours does
    setenv("ANTDT_FAKE_NCCL", setups_[rank].orders.c_str(), 1);
    setenv("NCCL_COMM_BLOCKING", "0", 1);  // as jobd/programs/role_processes.h does
    if (!setups_[rank].nccl_conf.empty()) {
      setenv("NCCL_CONF_FILE", setups_[rank].nccl_conf.c_str(), 1);
    }
    std::vector<Cell*> cells;
    for (std::size_t other = 0; other < setups_.size(); ++other) cells.push_back(&cells_[other]);
    Member member{rank,          static_cast<std::uint32_t>(setups_.size()),  cells, cells_[rank],
                  setups_[rank], load_backend(Member::options(setups_[rank]))};
    const std::string trouble = body(member);
    member.builder.reset();  // it holds the communicator, whose thread is to have ended
    trouble.copy(cells_[rank].trouble, sizeof(Cell::trouble) - 1);
    _exit(trouble.empty() ? 0 : 1);
  }
  // What a killed process left of the library's memory.
  void remove_memory() const {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      for (const pid_t pid : all_pids_) {
        const std::string begin = "fake-gpus-" + std::to_string(pid) + "-";
        if (entry.path().filename().string().starts_with(begin)) {
          std::error_code ignored;
          std::filesystem::remove(entry.path(), ignored);
        }
      }
    }
  }

  std::vector<MemberSetup> setups_;
  Cell* cells_ = nullptr;
  std::vector<std::optional<pid_t>> pids_;
  std::vector<pid_t> all_pids_;
};

// Memory of the device, a stream, and what is in it.
class OnDevice {
 public:
  OnDevice(CudaRuntime& cuda, std::size_t bytes)
      : cuda_(cuda), memory_(*cuda.allocate(bytes)), stream_(*cuda.make_stream()) {}
  ~OnDevice() {
    cuda_.destroy_stream(stream_);
    cuda_.free(memory_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  [[nodiscard]] void* data() const { return memory_; }
  [[nodiscard]] Stream stream() const { return stream_; }
  void put(const void* from, std::size_t bytes) { copy(memory_, from, bytes); }
  void get(void* to, std::size_t bytes) { copy(to, memory_, bytes); }

 private:
  void copy(void* to, const void* from, std::size_t bytes) {
    const Event event = *cuda_.make_event();
    if (!cuda_.copy(to, from, bytes, stream_) || !cuda_.record(event, stream_)) std::abort();
    await([&] { return *cuda_.query(event) == Work::kDone; });
    cuda_.destroy_event(event);
  }
  CudaRuntime& cuda_;
  void* memory_;
  Stream stream_;
};

inline std::string message_of(const Status& status) { return status ? "" : status.error().message; }

// Whole numbers that every type can hold, and whose sums are exact in any order.
template <class T>
std::vector<T> numbers_of(std::uint32_t rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>((i % 50) + rank * 3);
  return values;
}

// One all-reduce on the device, waited for.
inline Status sum_once(Member& member, Collective& group, std::size_t count = 4096) {
  OnDevice device(*(*member.backend)->cuda, count * sizeof(float));
  const std::vector<float> values = numbers_of<float>(member.rank, count);
  device.put(values.data(), count * sizeof(float));
  ANTDT_RETURN_IF_ERROR(
      group.device()->enqueue_sum({device.data(), count, DeviceType::kFloat32}, device.stream()));
  return group.device()->finish();
}

}  // namespace antdt::nccl
