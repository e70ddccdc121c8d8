// toml++ as this folder uses it: with errors as values. Included by .cc files only.
#pragma once

#define TOML_EXCEPTIONS 0
// In debug builds the parser asserts a condition that malformed text ("[=]") can violate. Without
// the assertion it reports the error that release builds report.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
