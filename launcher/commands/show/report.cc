#include <fmt/format.h>

#include "launcher/commands/commands.h"

namespace antdt::cli {

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kUnreachable:
    case ErrorKind::kRefused:
      return 3;
    default:
      return 1;
  }
}

int report(const Error& error) {
  fmt::print(stderr, "antdt: {}\n", error.message);
  return exit_code_of(error);
}

}  // namespace antdt::cli
