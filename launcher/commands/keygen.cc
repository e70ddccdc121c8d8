// antdt keygen: makes keys for users and agents, in the layout that both read.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/os/directory.h"
#include "core/os/fs.h"
#include "core/os/user.h"
#include "core/transport/keys.h"
#include "launcher/commands/commands.h"
#include "launcher/start/paths.h"

namespace antdt::cli {

namespace {

namespace fs = std::filesystem;

struct KeygenOptions {
  std::string directory = "~/.config/antdt";
  std::string user;                 // "": the calling user, with the keys in the directory itself
  std::vector<std::string> agents;  // hosts whose agents get keys of their own
};

std::string path_of(const std::string& dir, const std::string& name) {
  return fmt::format("{}/{}", dir, name);
}

// Hosts and users become names of files and directories.
Status check_file_name(const std::string& what, const std::string& name) {
  const bool fits = !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
                    name.find_first_of("/\\:\n\t ") == std::string::npos;
  if (fits) return {};
  return fail(ErrorKind::kUsage, "{} '{}' cannot name a file: take it without '/', ':' and blanks",
              what, name);
}

// Makes `name`.key and `name`.pub unless they exist, and copies the public key to where the other
// side looks for it.
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

// Makes the .pub files in `to` equal to those in `from`.
Status mirror(const std::string& from, const std::string& to) {
  ANTDT_RETURN_IF_ERROR(make_directories(to, 0700));
  ANTDT_TRY(const std::vector<std::string> wanted, names_in(from));
  for (const std::string& name : wanted) {
    if (!name.ends_with(".pub")) continue;
    ANTDT_TRY(const std::string text, read_file(path_of(from, name)));
    ANTDT_RETURN_IF_ERROR(write_file_atomic(path_of(to, name), text, 0644));
  }
  ANTDT_TRY(const std::vector<std::string> present, names_in(to));
  for (const std::string& name : present) {
    if (name.ends_with(".pub") && std::ranges::find(wanted, name) == wanted.end()) {
      unlink(path_of(to, name).c_str());
    }
  }
  return {};
}

// Gives each user and each host the public keys that they need.
Status share(const std::string& dir) {
  ANTDT_TRY(const auto hosts, names_in(dir + "/hosts"));
  for (const std::string& host : hosts) {
    ANTDT_RETURN_IF_ERROR(mirror(dir + "/authorized", dir + "/hosts/" + host + "/authorized"));
  }
  ANTDT_TRY(const auto users, names_in(dir + "/users"));
  for (const std::string& user : users) {
    ANTDT_RETURN_IF_ERROR(mirror(dir + "/agents", dir + "/users/" + user + "/agents"));
  }
  return {};
}

// An earlier release authorized the same key under a name that is no user's.
void rename_nameless(const std::string& dir, const std::string& user) {
  const std::string nameless = dir + "/authorized/job.pub";
  if (user == "job") return;
  const auto old = transport::load_public_key(nameless);
  const auto now = transport::load_public_key(dir + "/authorized/" + user + ".pub");
  if (!old || !now || old->z85 != now->z85) return;
  unlink(nameless.c_str());
  fmt::print("{} is now {}.pub\n", nameless, user);
}

Status make_agents(const std::string& dir, const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    ANTDT_RETURN_IF_ERROR(check_file_name("the host", host));
    ANTDT_RETURN_IF_ERROR(
        make_pair(dir + "/hosts/" + host, "agent", fmt::format("{}/agents/{}.pub", dir, host)));
  }
  if (!hosts.empty() || fs::exists(dir + "/hosts")) return {};
  return make_pair(dir, "agent", dir + "/agents/cluster.pub");
}

void tell(const std::string& dir, const std::string& user, const std::string& of_user) {
  fmt::print(
      "\nOn the machine where {0} calls antdt run, in the directory cluster.keys:\n"
      "  {1}/job.key      proves that a job is {0}'s; whoever has it can run programs as {0}\n"
      "  {1}/agents       the public keys by which it recognizes the agents\n",
      user, of_user);
  if (fs::exists(dir + "/hosts")) {
    fmt::print(
        "On each host, as the directory of antdtd --keys:\n"
        "  {}/hosts/NAME    its own agent.key, and in authorized/ the users whose jobs it runs;\n"
        "                   cluster.hosts names the host by the same NAME\n",
        dir);
  } else {
    fmt::print(
        "On each host, in the directory of antdtd --keys:\n"
        "  agent.key            proves who the agent is; it is the same on all hosts, so an "
        "intruder\n"
        "                       on one of them can pose as any other. antdt keygen --agent NAME\n"
        "                       makes one for each host instead\n"
        "  authorized/{}.pub   the user whose jobs it runs; one file for each user\n",
        user);
  }
  fmt::print(
      "Copy the .key files by a way that nobody else can read (mode 0600). Removing\n"
      "authorized/{}.pub from a host takes the right away within a second.\n",
      user);
}

Status keygen(const KeygenOptions& options) {
  const std::string dir = launcher::absolute_path(options.directory, ".");
  const std::string user = options.user.empty() ? own_user().name : options.user;
  ANTDT_RETURN_IF_ERROR(check_file_name("the user", user));
  const std::string of_user = options.user.empty() ? dir : dir + "/users/" + user;
  ANTDT_RETURN_IF_ERROR(make_pair(of_user, "job", fmt::format("{}/authorized/{}.pub", dir, user)));
  rename_nameless(dir, user);
  ANTDT_RETURN_IF_ERROR(make_agents(dir, options.agents));
  ANTDT_RETURN_IF_ERROR(share(dir));
  tell(dir, user, of_user);
  return {};
}

}  // namespace

void add_keygen(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = app.add_subcommand("keygen", "Make the keys of a cluster");
  command->add_option("--dir", options->directory, "where; default ~/.config/antdt")
      ->type_name("DIR");
  command
      ->add_option("--user", options->user,
                   "whose jobs the key is for, kept in DIR/users/NAME; default: yours, in DIR")
      ->type_name("NAME");
  command
      ->add_option("--agent", options->agents,
                   "a host, as cluster.hosts names it, whose agent gets a key of its own, in "
                   "DIR/hosts/NAME; may be repeated")
      ->type_name("NAME");
  command->callback([options, &exit_code] {
    if (const auto done = keygen(*options); !done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
