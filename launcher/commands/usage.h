// Messages for a command line that cannot be read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace antdt::cli {

// One line for the terminal: which command, what is wrong, and where more is explained. If a word
// stands in the place of a command but is none, the message names it and the nearest command.
[[nodiscard]] std::string usage_error(const CLI::App& app, const CLI::Error& error, int argc,
                                      const char* const* argv);

// A check for options: the value must be a whole number of at least 1.
[[nodiscard]] CLI::Validator at_least_one();

// Whether what is written to this descriptor may have colours: it is a terminal, and NO_COLOR
// (https://no-color.org) is not set.
[[nodiscard]] bool wants_colours(int descriptor);

}  // namespace antdt::cli
