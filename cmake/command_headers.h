// Precompiled for the programs with a command line (cmake/Targets.cmake).
#pragma once
#include <CLI/CLI.hpp>

#include "cmake/headers.h"
