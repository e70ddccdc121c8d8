#include "trainer/data/index/lost_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

namespace antdt::data {

struct Mapping {
  std::atomic<std::uintptr_t> begin{0};  // 0: not in use, and the rest may change
  std::size_t bytes = 0;
  std::string path;
  Mapping* next = nullptr;
};

namespace {

// A signal handler cannot reach anything else.
std::atomic<Mapping*> g_first = nullptr;
std::string g_program;  // written before the handler is there, as are the next two
int g_exit_code = 1;
struct sigaction g_before {};

// The entries that are not in use.
struct Unused {
  std::mutex mutex;
  std::vector<Mapping*> entries;
};
Unused& unused() {
  static auto* const all = new Unused;  // files may be closed when the process ends
  return *all;
}

const Mapping* find(std::uintptr_t address) {
  for (const Mapping* m = g_first.load(); m != nullptr; m = m->next) {
    const std::uintptr_t begin = m->begin.load();
    if (begin != 0 && address >= begin && address - begin < m->bytes) return m;
  }
  return nullptr;
}

// Calls nothing that a handler must not call.
void write_line(const Mapping& lost) {
  std::array<char, 5000> line;
  std::size_t length = 0;
  const auto add = [&](std::string_view text) {
    const std::size_t fits = std::min(text.size(), line.size() - length);
    std::memcpy(line.data() + length, text.data(), fits);
    length += fits;
  };
  add(g_program);
  add(": ");
  add(lost.path);
  add(" cannot be read any more: its disk or file server reports an error, or the file was cut "
      "short, replaced or removed while it was in use\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), length);
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const bool of_an_access = info->si_code > 0;  // and not sent by a process
  const Mapping* lost =
      of_an_access ? find(reinterpret_cast<std::uintptr_t>(info->si_addr)) : nullptr;
  if (lost != nullptr) {
    write_line(*lost);
    ::_exit(g_exit_code);
  }
  // The access is repeated when this returns, and the signal comes again.
  ::sigaction(SIGBUS, &g_before, nullptr);
  if (!of_an_access) std::raise(SIGBUS);
}

}  // namespace

Mapping* list_mapping(const std::string& path, const void* begin, std::size_t bytes) {
  Mapping* entry = nullptr;
  {
    const std::lock_guard lock(unused().mutex);
    if (!unused().entries.empty()) {
      entry = unused().entries.back();
      unused().entries.pop_back();
    }
  }
  const bool is_new = entry == nullptr;
  if (is_new) entry = new Mapping;
  entry->bytes = bytes;
  entry->path = path;
  entry->begin = reinterpret_cast<std::uintptr_t>(begin);
  if (is_new) {
    entry->next = g_first;
    while (!g_first.compare_exchange_weak(entry->next, entry)) {
    }
  }
  return entry;
}

void drop_mapping(Mapping* mapping) {
  mapping->begin = 0;
  const std::lock_guard lock(unused().mutex);
  unused().entries.push_back(mapping);
}

void end_when_a_file_is_lost(const std::string& program, int exit_code) {
  g_program = program;
  g_exit_code = exit_code;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before);
}

}  // namespace antdt::data
