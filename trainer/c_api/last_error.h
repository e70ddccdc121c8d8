// What a function of the C interface answers when something is wrong.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include "core/result.h"
#include "include/antdt.h"

namespace antdt::capi {

// Of the calling thread, for antdt_last_error().
void set_last_error(std::string text);
[[nodiscard]] const char* last_error();

// Keeps the text and answers the code.
[[nodiscard]] int failed(const Error& error);
[[nodiscard]] int failed(int code, std::string text);

// `call` answers a code; what it throws becomes one. Nothing is thrown through C.
template <class Call>
int guarded(Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    return failed(ANTDT_INTERNAL, error.what());
  } catch (...) {
    return failed(ANTDT_INTERNAL, "an exception of an unknown type");
  }
}

}  // namespace antdt::capi
