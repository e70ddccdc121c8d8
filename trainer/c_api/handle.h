// What handles of both levels have in common.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <string>

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

// Whether `to` is what this function may write a T into.
template <class T>
int check_out(const char* function, const char* name, const T* to) {
  if (to == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: {} is NULL", function, name));
  if (to->struct_size >= sizeof(T)) return ANTDT_OK;
  return failed(ANTDT_USAGE, fmt::format("{}: {}.struct_size is {}; set it to the size of the "
                                         "structure, {}",
                                         function, name, to->struct_size, sizeof(T)));
}
// Fields that a newer program knows and this library does not stay as they are.
template <class T>
int copy_out(const char* function, const char* name, T from, T* to) {
  if (const int wrong = check_out(function, name, to); wrong != ANTDT_OK) return wrong;
  from.struct_size = to->struct_size;
  std::memcpy(to, &from, sizeof(T));
  return ANTDT_OK;
}

}  // namespace antdt::capi
