#include "core/os/forks/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <new>
#include <string>
#include <utility>

#include "core/check.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; headers may be older than the kernel
#endif

namespace antdt {
namespace {

constexpr std::size_t kAlignment = 64;  // alignment of a slot: a cache line

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

bool is_small(std::size_t bytes, std::size_t alignment) {
  return bytes < HugePages::kSmallest || alignment > kAlignment;
}

std::byte* chunk_of(std::byte* at) {
  return at - reinterpret_cast<std::uintptr_t>(at) % HugePages::kChunk;
}

// Maps `bytes` zero bytes, a multiple of kChunk, aligned to kChunk.
std::byte* map_aligned(std::size_t bytes) {
  const std::size_t more = bytes + HugePages::kChunk;
  void* mapped = mmap(nullptr, more, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  std::byte* const chunk = chunk_of(begin + HugePages::kChunk - 1);
  if (chunk != begin) munmap(begin, static_cast<std::size_t>(chunk - begin));
  std::byte* const end = chunk + bytes;
  if (end != begin + more) munmap(end, static_cast<std::size_t>(begin + more - end));
  madvise(chunk, bytes, MADV_HUGEPAGE);  // the kernel may ignore it
  return chunk;
}

// MADV_COLLAPSE would make huge pages even if an administrator has forbidden them.
bool system_gives_huge_pages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string setting;
  return std::getline(in, setting) && setting.find("[never]") == std::string::npos;
}

}  // namespace

HugePages& HugePages::of_process() {
  // never destroyed, because its memory may be in use until the process ends
  static auto* const pages = new HugePages;
  return *pages;
}

HugePages::~HugePages() {
  {
    const std::lock_guard lock(mutex_);
    mends_ = false;
    ends_ = true;
  }
  mender_wakes_.notify_one();
  if (mender_.joinable()) mender_.join();
  ANTDT_CHECK(chunks_.empty(), "{} chunks of memory are still in use", chunks_.size());
}

std::uint64_t HugePages::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [at, chunk] : chunks_) sum += chunk.bytes;
  return sum;
}

// ------------------------------------------------------------------- allocation

void* HugePages::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (is_small(bytes, alignment)) return ::operator new (bytes, std::align_val_t{alignment});
  const std::lock_guard lock(mutex_);
  const std::size_t slot = round_up(bytes, kAlignment);
  return slot > kChunk / 2 ? map_chunk(round_up(bytes, kChunk)) : allocate_slot(slot);
}

void HugePages::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
  if (is_small(bytes, alignment)) {
    ::operator delete (at, std::align_val_t{alignment});
    return;
  }
  const std::lock_guard lock(mutex_);
  auto* const begin = static_cast<std::byte*>(at);
  const std::size_t slot = round_up(bytes, kAlignment);
  slot > kChunk / 2 ? unmap_chunk(begin) : deallocate_slot(begin, slot);
}

void* HugePages::allocate_slot(std::size_t slot) {
  std::set<std::byte*>& with_room = with_room_[slot];
  if (with_room.empty()) with_room.insert(map_chunk(kChunk));
  std::byte* const begin = *with_room.begin();
  Chunk& chunk = chunks_.at(begin);
  std::byte* at = nullptr;
  if (chunk.freed.empty()) {
    at = begin + slot * chunk.fresh++;
  } else {
    at = chunk.freed.back();
    chunk.freed.pop_back();
  }
  if (++chunk.live == kChunk / slot) with_room.erase(begin);
  return at;
}

void HugePages::deallocate_slot(std::byte* at, std::size_t slot) {
  std::byte* const begin = chunk_of(at);
  Chunk& chunk = chunks_.at(begin);
  if (--chunk.live == 0) {
    with_room_[slot].erase(begin);
    return unmap_chunk(begin);
  }
  chunk.freed.push_back(at);
  with_room_[slot].insert(begin);
}

std::byte* HugePages::map_chunk(std::size_t bytes) {
  std::byte* const begin = map_aligned(bytes);
  chunks_[begin].bytes = bytes;
  return begin;
}

void HugePages::unmap_chunk(std::byte* chunk) {
  const auto found = chunks_.find(chunk);
  ANTDT_CHECK(found != chunks_.end(), "memory is given back that was not taken from here");
  munmap(chunk, found->second.bytes);
  chunks_.erase(found);
}

// ---------------------------------------------------------------------- mending

void HugePages::mend() {
  static const bool allowed = system_gives_huge_pages();
  if (!allowed) return;
  {
    const std::lock_guard lock(mutex_);
    if (chunks_.empty()) return;
    mends_ = from_the_first_ = true;
    if (!mender_.joinable()) mender_ = std::thread([this] { mend_all(); });
  }
  mender_wakes_.notify_one();
}

void HugePages::stop_mending() {
  const std::lock_guard lock(mutex_);
  mends_ = false;
}

void HugePages::wait_for_mending() {
  std::unique_lock lock(mutex_);
  mender_rests_.wait(lock, [this] { return !mends_; });
}

// Walks through the chunks by address. A chunk that is unmapped meanwhile gives an error, and one
// that was mapped in its place is mended as well; both are harmless.
void HugePages::mend_all() {
  std::unique_lock lock(mutex_);
  std::byte* next = nullptr;
  while (true) {
    if (!mends_) {
      mender_rests_.notify_all();
      mender_wakes_.wait(lock, [this] { return mends_ || ends_; });
      if (ends_) return;
    }
    if (std::exchange(from_the_first_, false)) next = nullptr;
    const auto found = chunks_.lower_bound(next);
    if (found == chunks_.end()) {
      mends_ = false;
      continue;
    }
    std::byte* const begin = found->first;
    const std::size_t bytes = found->second.bytes;
    lock.unlock();
    bool can_be = true;
    for (std::size_t at = 0; at < bytes && can_be; at += kChunk) {
      // EINVAL: this kernel does not know the call, or gives no huge pages at all.
      can_be = madvise(begin + at, kChunk, MADV_COLLAPSE) == 0 || errno != EINVAL;
    }
    next = begin + bytes;
    lock.lock();
    if (!can_be) mends_ = false;
  }
}

}  // namespace antdt
