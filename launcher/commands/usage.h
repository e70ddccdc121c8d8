// What is said of a command line that cannot be read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace antdt::cli {

// One line for the terminal: which command, what is wrong, where more is said. A
// word in the place of a command that is none is named, with the nearest one.
[[nodiscard]] std::string usage_error(const CLI::App& app, const CLI::Error& error, int argc,
                                      const char* const* argv);

// A check for options: a whole number of at least 1.
[[nodiscard]] CLI::Validator at_least_one();

}  // namespace antdt::cli
