// What handles of both levels have in common.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/result.h"
#include "include/antdt.h"
#include "trainer/c_api/last_error.h"
#include "trainer/client/client.h"

namespace antdt::capi {

// Which process a handle is of: its threads are not in a child of that.
class OfThisProcess {
 public:
  OfThisProcess();
  [[nodiscard]] bool here() const;
  [[nodiscard]] std::string forked(const char* function) const;

 private:
  const pid_t pid_;
};

// The texts of an antdt_about.
class About {
 public:
  About() = default;
  About(const client::Client& client, bool in_job);
  [[nodiscard]] antdt_about fields() const;

 private:
  bool in_job_ = false;
  std::string job_, worker_, host_, run_dir_, config_json_;
  std::uint32_t attempt_ = 0;
};

// The size of a structure in the first release that had it, which is the least that a program may
// give. Specialize it for a structure that has grown since then.
template <class T>
inline constexpr std::size_t kFirstSize = sizeof(T);
template <>
inline constexpr std::size_t kFirstSize<antdt_metrics> = 56;
template <>
inline constexpr std::size_t kFirstSize<antdt_evaluation> = 48;

// Whether `to` is what this function may write a T into.
template <class T>
int check_out(const char* function, const char* name, const T* to) {
  if (to == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: {} is NULL", function, name));
  if (to->struct_size >= kFirstSize<T>) return ANTDT_OK;
  return failed(ANTDT_USAGE, fmt::format("{}: {}.struct_size is {}; set it to the size of the "
                                         "structure, {}",
                                         function, name, to->struct_size, sizeof(T)));
}
// Fields that only one of them knows, a newer program or a newer library, stay as they are.
template <class T>
int copy_out(const char* function, const char* name, T from, T* to) {
  if (const int wrong = check_out(function, name, to); wrong != ANTDT_OK) return wrong;
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, std::min<std::size_t>(to->struct_size, sizeof(T)));
  return ANTDT_OK;
}

// What a program gave, with 0 for the fields that are in this library's T and not in the program's.
// An error (kUsage) if it is NULL or smaller than any release had it.
template <class T>
Result<T> copy_in(const char* function, const char* name, const T* from) {
  if (from == nullptr) return fail(ErrorKind::kUsage, "{}: {} is NULL", function, name);
  if (from->struct_size < kFirstSize<T>) {
    return fail(ErrorKind::kUsage,
                "{}: {}.struct_size is {}; set it to the size of the structure, {}", function, name,
                from->struct_size, sizeof(T));
  }
  T taken{};
  std::memcpy(&taken, from, std::min<std::size_t>(from->struct_size, sizeof(T)));
  return taken;
}

}  // namespace antdt::capi
