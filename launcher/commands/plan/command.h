// antdt plan, as launcher/commands/commands.h has the other commands.
#pragma once

#include <CLI/CLI.hpp>

namespace antdt::cli {

void add_plan(CLI::App& app, int& exit_code);

}  // namespace antdt::cli
