// Errors in operation, as values.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace antdt {

// The kind of an error decides what a program does about it: its exit code, and whether it tries
// again.
enum class ErrorKind {
  kUsage,        // the user's flags, job.toml or data: exit code 2
  kUnreachable,  // no answer, or no room: exit code 3
  kRefused,      // a peer refused: wrong key, stale attempt, no common version
  kIo,           // a file, a disk, a socket of this process
  kPeerIo,       // a peer could not read or write a file of its own; that may pass
  kCorrupt,      // stored or received bytes that cannot be what was written
  kObstructed,   // a user's process or file was in the way; another attempt may find none
  kAborted,      // the operation was asked to end
  kTooLarge,     // it does not fit the message that it would be, however often it is tried
  kInternal,     // none of the above
};

// `message` says what was tried, on what, and the cause, and how the user can mend it if that is
// possible.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

// Like `fail`, with the text of errno (or another system error number) appended.
[[nodiscard]] tl::unexpected<Error> fail_errno(ErrorKind kind, int error_number, std::string what);

}  // namespace antdt

#define ANTDT_CONCAT_(a, b) a##b
#define ANTDT_CONCAT(a, b) ANTDT_CONCAT_(a, b)

// ANTDT_TRY(auto x, expression): declares x from a Result, or returns its error.
#define ANTDT_TRY(declaration, ...)                                                               \
  auto ANTDT_CONCAT(antdt_try_, __LINE__) = (__VA_ARGS__);                                        \
  if (!ANTDT_CONCAT(antdt_try_, __LINE__)) {                                                      \
    return tl::unexpected<::antdt::Error>(std::move(ANTDT_CONCAT(antdt_try_, __LINE__)).error()); \
  }                                                                                               \
  declaration = std::move(*ANTDT_CONCAT(antdt_try_, __LINE__))

// ANTDT_RETURN_IF_ERROR(expression): returns the error of a Status (or any
// Result whose value is not wanted).
#define ANTDT_RETURN_IF_ERROR(...)                                            \
  do {                                                                        \
    if (auto antdt_status = (__VA_ARGS__); !antdt_status) {                   \
      return tl::unexpected<::antdt::Error>(std::move(antdt_status).error()); \
    }                                                                         \
  } while (false)
