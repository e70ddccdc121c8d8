// Memory in huge pages, for large data that stays for long while the process forks.
//
// While a process forks, the kernel copies its page table, and the process stands still: 25 to 60
// ms for each GB in pages of 4 KiB, less than 1 ms in pages of 2 MiB. Random access is faster as
// well. If the system gives no huge pages (/sys/kernel/mm/transparent_hugepage/enabled: "never"),
// this is ordinary memory.
//
// Pages that are written while the child lives are split into small pages. mend() joins them again
// after the child has ended (MADV_COLLAPSE, Linux 6.1; an older kernel does it by itself at some
// time). That copies everything, in a background thread: 0.3 s for each GB.
//
// Requests of a page (4 KiB) or more are served from chunks of 2 MiB, each for one size; requests
// of more than half a chunk have chunks of their own. An empty chunk is returned to the system.
// (The pools of std::pmr would keep it, and a server that gives its rows to others does not need it
// any more.) Smaller requests go to operator new.
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

  // The instance of this process, which is never destroyed. It uses no memory until it becomes the
  // default resource or is asked for memory.
  [[nodiscard]] static HugePages& of_process();

  HugePages() = default;
  // All memory must have been given back.
  ~HugePages() override;
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // Starts to join all pages into huge ones again, in the background; nobody waits.
  void mend();
  // To be called before a fork, which would undo what is joined from now on.
  void stop_mending();
  // Waits until the work that mend() began has ended or was stopped.
  void wait_for_mending();

  [[nodiscard]] std::uint64_t mapped_bytes() const;

 private:
  struct Chunk {
    std::size_t bytes = 0;          // size of the mapping
    std::uint32_t live = 0;         // number of slots in use
    std::uint32_t fresh = 0;        // slots from here on have never been used
    std::vector<std::byte*> freed;  // slots that were used and freed
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
  std::map<std::size_t, std::set<std::byte*>> with_room_;  // chunks with free slots, by slot size
  std::thread mender_;                                     // started by the first mend()
  std::condition_variable mender_wakes_, mender_rests_;
  bool mends_ = false, from_the_first_ = false, ends_ = false;
};

}  // namespace antdt
