#include "exchange.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "streams.h"

namespace fake {
namespace {

bool wait_until(const std::function<bool()>& done, const GoOn& go_on) {
  while (!done()) {
    if (!go_on()) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

void Exchange::create(const std::string& name) {
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Memory)) != 0) broken("there is no room in /dev/shm");
  ::close(fd);
}

std::unique_ptr<Exchange> Exchange::open(const std::string& name, int rank, int size) {
  const int fd = ::shm_open(name.c_str(), O_RDWR, 0600);
  if (fd < 0) return nullptr;
  void* const memory = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) broken("mmap failed");
  std::unique_ptr<Exchange> made(new Exchange(name, rank, size, static_cast<Memory*>(memory)));
  made->memory_->pid[rank] = ::getpid();
  return made;
}

// The name goes with the first that leaves: one that comes later finds nothing.
Exchange::~Exchange() {
  ::shm_unlink(name_.c_str());
  ::munmap(memory_, sizeof(Memory));
}

bool Exchange::meet(const GoOn& go_on) {
  const std::uint64_t number = ++memory_->met[rank_];
  return wait_until(
      [&] {
        return std::all_of(memory_->met, memory_->met + size_,
                           [&](const auto& met) { return met >= number; });
      },
      go_on);
}

bool Exchange::gather(const std::byte* mine, std::size_t bytes, const GoOn& go_on) {
  // All have read the parts of the gather before.
  if (!meet(go_on)) return false;
  std::memcpy(memory_->part[rank_], mine, bytes);
  return meet(go_on);
}

const std::byte* Exchange::part(int rank) const { return memory_->part[rank]; }

bool Exchange::send(int to, const std::byte* bytes, std::size_t size, const GoOn& go_on) {
  Pipe& pipe = memory_->pipe[rank_][to];
  for (std::size_t at = 0; at < size; at += kPieceBytes) {
    if (!wait_until([&] { return pipe.taken == pipe.sent; }, go_on)) return false;
    std::memcpy(pipe.piece, bytes + at, std::min(kPieceBytes, size - at));
    ++pipe.sent;
  }
  return true;
}

bool Exchange::receive(int from, std::byte* bytes, std::size_t size, const GoOn& go_on) {
  Pipe& pipe = memory_->pipe[from][rank_];
  for (std::size_t at = 0; at < size; at += kPieceBytes) {
    if (!wait_until([&] { return pipe.sent > pipe.taken; }, go_on)) return false;
    std::memcpy(bytes + at, pipe.piece, std::min(kPieceBytes, size - at));
    ++pipe.taken;
  }
  return true;
}

bool Exchange::all_live() const {
  return std::all_of(memory_->pid, memory_->pid + size_, [](const auto& pid) {
    // A child that was not waited for is there still, as a zombie.
    if (pid == 0) return true;
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    char text[256] = {};
    const int fd = ::open(path.c_str(), O_RDONLY);
    if (fd < 0) return false;
    const ssize_t size = ::read(fd, text, sizeof(text) - 1);
    ::close(fd);
    const char* const end = size > 0 ? std::strrchr(text, ')') : nullptr;
    return end != nullptr && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
  });
}

}  // namespace fake
