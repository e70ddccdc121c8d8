// antdt keygen: keys for jobs and agents, laid out as both read them.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cmd/antdt/commands.h"
#include "core/fs.h"
#include "core/transport/keys.h"
#include "launcher/paths.h"

namespace antdt::cli {

namespace {

// Makes `name`.key and `name`.pub unless they are there, and puts the public
// key where the other side looks for it.
Status make_pair(const std::string& dir, const std::string& name, const std::string& copy) {
  if (::access(fmt::format("{}/{}.key", dir, name).c_str(), F_OK) == 0) {
    fmt::print("{}/{}.key is kept\n", dir, name);
  } else {
    ANTDT_TRY([[maybe_unused]] const transport::KeyPair keys,
              transport::generate_key_pair(dir, name));
    fmt::print("{}/{}.key is new\n", dir, name);
  }
  ANTDT_TRY(const std::string text, read_file(fmt::format("{}/{}.pub", dir, name)));
  ANTDT_RETURN_IF_ERROR(make_directories(copy.substr(0, copy.rfind('/')), 0700));
  return write_file_atomic(copy, text, 0644);
}

Status keygen(const std::string& directory) {
  const std::string dir = launcher::absolute_path(directory, ".");
  ANTDT_RETURN_IF_ERROR(make_pair(dir, "job", dir + "/authorized/job.pub"));
  ANTDT_RETURN_IF_ERROR(make_pair(dir, "agent", dir + "/agents/cluster.pub"));
  fmt::print(
      "\nOn the machine that calls antdt run, in cluster.keys:\n"
      "  job.key              who your jobs are; whoever has it can run programs on the hosts\n"
      "  agents/cluster.pub   the key that every agent must prove to have; a host with a key\n"
      "                       of its own has agents/HOST.pub instead\n"
      "On each host, in the directory of antdtd --keys:\n"
      "  agent.key            who the agent is\n"
      "  authorized/job.pub   whose jobs it runs; one file for each who may\n"
      "Copy the .key files by a way that nobody else can read (mode 0600).\n");
  return {};
}

}  // namespace

void add_keygen(CLI::App& app, int& exit_code) {
  const auto directory = std::make_shared<std::string>("~/.config/antdt");
  CLI::App* command = app.add_subcommand("keygen", "Make the keys of a cluster");
  command->add_option("--dir", *directory, "where; default ~/.config/antdt")->type_name("DIR");
  command->callback([directory, &exit_code] {
    if (const auto done = keygen(*directory); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
