// toml++ as this folder uses it: errors are values. Included by .cc files only.
#pragma once

#define TOML_EXCEPTIONS 0
// The parser asserts in debug builds what malformed text ("[=]") can break, and
// then reports it as the error that release builds give.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
