// toml++ as this folder uses it: errors are values. Included by .cc files only.
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
