// Turns exceptions of a program's own code, and of a device, into errors where they enter.
#pragma once

#include <antdt/kit/options.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "core/result.h"

namespace antdt::trainer {

// Returns the Result of f(). An exception becomes an error of `kind` (kUsage for a kit::UsageError)
// that contains `what` and the exception's text.
template <class F>
auto or_thrown(ErrorKind kind, const std::string& what, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const kit::UsageError& e) {
    return fail(ErrorKind::kUsage, "{}", e.what());
  } catch (const c10::Error& e) {
    return fail(kind, "{}: {}", what, e.what_without_backtrace());
  } catch (const std::exception& e) {
    return fail(kind, "{}: {}", what, e.what());
  } catch (...) {
    return fail(kind, "{}: it threw what is no std::exception", what);
  }
}

// For what has no Result: an exception of f() becomes one whose text begins with `what`, and does
// not contain LibTorch's backtrace.
template <class F>
void or_throw_saying(const std::string& what, F f) {
  const Status done = or_thrown(ErrorKind::kInternal, what, [&]() -> Status {
    f();
    return {};
  });
  if (!done) throw std::runtime_error(done.error().message);
}

}  // namespace antdt::trainer
