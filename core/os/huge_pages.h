// Memory in huge pages, for what is large, stays for long and is forked.
//
// While a process forks, the kernel copies the table of its pages, and the process
// stands still: for pages of 4 KiB 25 to 60 ms a GB, for pages of 2 MiB less than
// 1 ms. Reading at random places is faster as well. Where the system gives no huge
// pages (/sys/kernel/mm/transparent_hugepage/enabled: "never") this is ordinary memory.
//
// What is written while the child lives comes apart into small pages. mend() puts it
// together again once the child has ended (MADV_COLLAPSE, Linux 6.1; an older kernel does
// it by itself, some day). It copies all of it, in a thread beside: 0.3 s a GB.
//
// Requests of a page (4 KiB) or more lie in chunks of 2 MiB, each of one size; those of
// more than half a chunk have chunks of their own. A chunk goes back to the system when
// nothing is left in it; the pools of std::pmr would keep it, and a server that hands its
// rows to others needs it no more. Smaller requests are those of operator new.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace antdt {

class HugePages final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t kChunk = std::size_t{2} << 20;
  static constexpr std::size_t kSmallest = 4096;

  // That of this process, which is never destroyed; it has nothing until somebody
  // makes it the default resource or asks it for memory.
  [[nodiscard]] static HugePages& of_process();

  HugePages() = default;
  // Everything was given back before.
  ~HugePages() override;
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // All of it becomes huge pages again, from now on and in the background; nobody waits.
  void mend();
  // A fork is next, which undoes what is mended from here on: no more of it.
  void stop_mending();
  // Until what mend() began has ended or was stopped.
  void wait_for_mending();

  [[nodiscard]] std::uint64_t mapped_bytes() const;

 private:
  struct Chunk {
    std::size_t bytes = 0;          // mapped
    std::uint32_t live = 0;         // slots in use
    std::uint32_t fresh = 0;        // slots that were never in use begin here
    std::vector<std::byte*> freed;  // slots that were
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
  [[nodiscard]] void* allocate_slot(std::size_t slot);
  void deallocate_slot(std::byte* at, std::size_t slot);
  std::byte* map_chunk(std::size_t bytes);
  void unmap_chunk(std::byte* chunk);
  void mend_all();

  mutable std::mutex mutex_;
  std::map<std::byte*, Chunk> chunks_;
  std::map<std::size_t, std::set<std::byte*>> with_room_;  // by the size of their slots
  std::thread mender_;                                     // begins with the first mend()
  std::condition_variable mender_wakes_, mender_rests_;
  bool mends_ = false, from_the_first_ = false, ends_ = false;
};

}  // namespace antdt
