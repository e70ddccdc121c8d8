#include "trainer/c_api/last_error.h"

namespace antdt::capi {
namespace {

std::string& text_of_this_thread() {
  thread_local std::string text;
  return text;
}

int code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
    case ErrorKind::kTooLarge:
      return ANTDT_CONFIG;
    case ErrorKind::kUnreachable:
      return ANTDT_UNREACHABLE;
    case ErrorKind::kRefused:
      return ANTDT_REFUSED;
    case ErrorKind::kIo:
    case ErrorKind::kPeerIo:
    case ErrorKind::kObstructed:
      return ANTDT_IO;
    case ErrorKind::kAborted:
      return ANTDT_INTERRUPTED;
    case ErrorKind::kInternal:
      break;
  }
  return ANTDT_INTERNAL;
}

}  // namespace

void set_last_error(std::string text) { text_of_this_thread() = std::move(text); }
const char* last_error() { return text_of_this_thread().c_str(); }

int failed(const Error& error) { return failed(code_of(error.kind), error.message); }

int failed(int code, std::string text) {
  set_last_error(std::move(text));
  return code;
}

}  // namespace antdt::capi
