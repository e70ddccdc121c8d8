// Invariants that are checked in every build.
//
// A broken invariant is a defect of this program, never of its input. It aborts with the state that
// explains it. Input from a peer or a user must be answered with an Error (core/result.h) before it
// can reach a check.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace antdt {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view detail);

}  // namespace antdt

// ANTDT_CHECK(cond, "format {}", args...): aborts with file, line, condition
// and the formatted detail when `cond` is false.
#define ANTDT_CHECK(cond, ...)                                                    \
  do {                                                                            \
    if (!(cond)) [[unlikely]] {                                                   \
      ::antdt::check_failed(__FILE__, __LINE__, #cond, fmt::format(__VA_ARGS__)); \
    }                                                                             \
  } while (false)
