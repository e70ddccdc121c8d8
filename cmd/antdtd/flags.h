// The command line of antdtd.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "antdtd/agent/setup.h"

namespace antdt::antdtd {

struct Flags {
  AgentFlags agent;
  std::string log_level = "info";
  bool release_cgroup = false;
  bool show_devices = false;
};

// Defines the flags; parsing the command line fills `flags` in.
void define(CLI::App& app, Flags& flags);

}  // namespace antdt::antdtd
