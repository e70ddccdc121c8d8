// The output of a command.
#pragma once

namespace antdt::cli {

// Writes out what is left of standard output. Returns `exit_code`, or 1 instead of 0, with a
// message on standard error, if something of the output could not be written. A reader that has
// left early, such as `head`, wanted no more: that is no error.
[[nodiscard]] int finish_output(int exit_code);

}  // namespace antdt::cli
