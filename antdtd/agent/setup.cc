#include "antdtd/agent/setup.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "antdtd/devices/visible_devices.h"
#include "antdtd/shim/successor.h"
#include "antdtd/users/user_files.h"
#include "core/log/log.h"
#include "core/metrics/exposition.h"
#include "core/os/fs.h"
#include "core/os/net.h"
#include "core/os/runtime_dir.h"
#include "core/report/device_report.h"
#include "core/report/json.h"

namespace antdt::antdtd {
namespace {

// State directory of agents of root. It is not root's own runtime directory, which no other user
// may enter.
constexpr const char* kRootStates = "/var/lib/antdt";
constexpr const char* kRootSockets = "/run/antdtd";
constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kDeviceOrder = "CUDA_DEVICE_ORDER";
// How many messages of a worker may wait for the loop, which may be large. Not fewer than it takes
// in a turn, because all that a process sent is to be passed on before its end is reported.
constexpr int kUnreadOfAWorker = UserSockets::kBatch;

std::string environment_or_empty(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) list.emplace_back(*entry);
  return list;
}

// Ports distinguish several agents of one user on one machine.
std::string instance_name(const std::string& listen) {
  return "agent-" + listen.substr(listen.find_last_of(':') + 1);
}

std::string default_state_dir(const std::string& listen) {
  const std::string systemd = environment_or_empty("STATE_DIRECTORY");
  if (!systemd.empty()) return systemd;
  if (geteuid() == 0) return kRootStates + ("/" + instance_name(listen));
  std::string base = environment_or_empty("XDG_STATE_HOME");
  if (base.empty()) base = environment_or_empty("HOME") + "/.local/state";
  // Hosts may share a home directory, and their agents have the same port.
  return base + "/antdt/" + host_name() + "/" + instance_name(listen);
}

Result<std::string> default_socket_dir(const std::string& listen) {
  const std::string systemd = environment_or_empty("RUNTIME_DIRECTORY");
  if (!systemd.empty()) return systemd;
  if (geteuid() == 0) return kRootSockets + ("/" + instance_name(listen));
  ANTDT_TRY(const std::string base, runtime_directory());
  return base + "/" + instance_name(listen);
}

Status check_mode(const AgentFlags& flags) {
  if (flags.is_private == !flags.listen.empty()) {
    return fail(ErrorKind::kUsage,
                "antdtd needs either --listen HOST:PORT (an agent of a cluster) or --private (one "
                "job on this machine)");
  }
  if (flags.is_private && flags.socket_dir.empty()) {
    return fail(ErrorKind::kUsage, "--private needs --socket-dir DIR: the job finds it there");
  }
  if (flags.is_private) return {};
  if (!is_end_point(flags.listen, true)) {
    return fail(ErrorKind::kUsage,
                "--listen {}: expected HOST:PORT, as in 10.0.0.1:7700 or [2001:db8::1]:7700",
                flags.listen);
  }
  if (flags.keys.empty()) {
    return fail(ErrorKind::kUsage,
                "refusing to listen on tcp without keys: make them with 'antdt keygen', put "
                "agent.key and the public keys of those who may use this agent (in authorized/) "
                "into a directory, and name it with --keys DIR");
  }
  return {};
}

// The address at which others reach this host: the given address, or that of the interface, or the
// address on which the agent listens if that is a single one.
Result<std::string> reachable_address(const AgentFlags& flags) {
  if (flags.address.starts_with('[')) return host_of(flags.address);
  if (!flags.address.empty()) return flags.address;
  if (!flags.interface.empty()) {
    Result<std::string> address = interface_address(flags.interface);
    if (!address && address.error().kind == ErrorKind::kUsage) {
      return fail(ErrorKind::kUnreachable, "--interface: {}", address.error().message);
    }
    return address;
  }
  if (flags.is_private) return "127.0.0.1";
  const std::string host = host_of(flags.listen);
  const bool every = host.empty() || host == "0.0.0.0" || host == "*" || host == "::";
  if (every) return interface_address("");
  return host;
}

Result<std::string> find_shim() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / "antdt-shim").string();
  if (!error && access(path.c_str(), X_OK) == 0) return path;
  return fail(ErrorKind::kIo,
              "{} is not there: antdt-shim is installed beside antdtd and starts every process",
              path);
}

// This program with its arguments, whose environment is kept beside the lock. Empty if something
// else restarts the agent, as systemd does.
Result<std::vector<std::string>> successor_of(const AgentFlags& flags) {
  std::vector<std::string> command;
  if (!flags.is_private || flags.no_successor) return command;
  ANTDT_TRY(const std::string arguments, read_file("/proc/self/cmdline"));
  for (std::size_t at = 0; at < arguments.size();) {
    command.emplace_back(arguments.c_str() + at);
    at += command.back().size() + 1;
  }
  std::error_code error;
  command.front() = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return fail(ErrorKind::kIo, "reading /proc/self/exe: {}", error.message());
  ANTDT_RETURN_IF_ERROR(write_file_atomic(environment_file(flags.state_dir + "/lock"),
                                          format_environment(whole_environment()), 0600));
  return command;
}

// Logs what the machine's cgroups cannot do.
Result<CgroupRoot> open_cgroups(const AgentFlags& flags, const std::string& path) {
  ANTDT_TRY(CgroupRoot root, CgroupRoot::open(path));
  log_info("workers get cgroups below {}{}{}", path,
           root.limits_memory() ? "" : "; their memory is not bounded: no memory controller there",
           !flags.limit_cpus || root.limits_cpus()
               ? ""
               : "; nor is their CPU time: no cpu controller there");
  return root;
}

// Much shorter than the time after which the agent's processes give it up.
Duration hung_after(const AgentFlags& flags) {
  return from_seconds(flags.orphan_timeout_seconds) / 4;
}

// An agent of a cluster that runs as root starts each job as the job's user.
bool serves_many_users(const AgentFlags& flags) { return !flags.is_private && geteuid() == 0; }

UserPolicy policy_of(const AgentFlags& flags, const std::string& shim) {
  UserPolicy policy;
  policy.own = own_user();
  policy.allow_root = flags.allow_root;
  if (!serves_many_users(flags)) return policy;
  for (const auto& [what, path] : {std::pair{"its sockets", flags.socket_dir},
                                   std::pair{"what it keeps of processes", flags.state_dir},
                                   std::pair{"its programs", shim}}) {
    const std::string barred = who_bars(path);
    if (barred.empty()) continue;
    policy.unreachable = fmt::format(
        "others cannot pass through {}, and {} are below it: mend it with chmod o+x {}, or "
        "keep them elsewhere (--socket-dir, --state-dir)",
        barred, what, barred);
    break;
  }
  return policy;
}

// Why something at `path` cannot be used: a mistake in the keys, or `otherwise` where the file can
// be read.
ErrorKind mistake_or(ErrorKind otherwise, const std::string& path, int mode) {
  if (access(path.c_str(), mode) == 0) return otherwise;
  const bool mistake = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
  return mistake ? ErrorKind::kUsage : ErrorKind::kIo;
}

Result<transport::Socket> open_control(EventLoop& loop, transport::Context& context,
                                       const AgentFlags& flags, const std::string& shim,
                                       std::unique_ptr<Users>& users) {
  if (flags.is_private) {
    return transport::Socket::bind_ipc(context, flags.socket_dir + "/agent.sock");
  }
  const std::string authorized = flags.keys + "/authorized";
  if (access(authorized.c_str(), R_OK | X_OK) != 0) {
    return fail(mistake_or(ErrorKind::kIo, authorized, R_OK | X_OK),
                "the directory {} is not there or cannot be read: put the .pub files that 'antdt "
                "keygen' made for those who may use this agent into it",
                authorized);
  }
  const std::string key_file = flags.keys + "/agent.key";
  Result<transport::KeyPair> key = transport::load_key_pair(key_file);
  if (!key) {
    return fail(mistake_or(key.error().kind, key_file, R_OK),
                "{}; 'antdt keygen' makes the key of an agent", key.error().message);
  }
  users = std::make_unique<Users>(loop, authorized, policy_of(flags, shim));
  // Messages carry the key itself, because the key's name may stand for another key later.
  ANTDT_RETURN_IF_ERROR(
      context.serve_authentication(loop, [known = users.get()](const std::string& z85) {
        return known->is_authorized(z85) ? z85 : std::string();
      }));
  Result<transport::Socket> control = transport::Socket::bind_tcp(context, flags.listen, *key);
  if (!control && control.error().kind == ErrorKind::kIo) {
    return fail(ErrorKind::kUnreachable, "{}", control.error().message);
  }
  return control;
}

Result<transport::Socket> open_socket_of(transport::Context& context, const std::string& socket_dir,
                                         const UserIdentity& user) {
  ANTDT_TRY(transport::Socket socket,
            transport::Socket::bind_ipc(context, bound_socket_of(socket_dir, user.uid),
                                        kUnreadOfAWorker));
  ANTDT_RETURN_IF_ERROR(hand_over_socket(socket_dir, user));
  return socket;
}

AgentOptions options_of(const AgentFlags& flags) {
  AgentOptions options;
  options.is_private = flags.is_private;
  options.host = flags.host_name;
  options.address = flags.address;
  options.capacity = probe_capacity();
  if (flags.cpus > 0) options.capacity.cpus = flags.cpus;
  if (flags.memory_bytes > 0) options.capacity.memory_bytes = flags.memory_bytes;
  options.idle_exit = from_seconds(flags.idle_exit_seconds);
  options.orphan_timeout = from_seconds(flags.orphan_timeout_seconds);
  options.log_file = flags.log_file;
  options.version = flags.version;
  options.device_claims = flags.device_claims;
  options.kept_directories = {flags.socket_dir, flags.state_dir};
  if (const char* visible = std::getenv(kVisibleDevices)) options.visible_devices = visible;
  if (const char* order = std::getenv(kDeviceOrder)) options.device_order = order;
  return options;
}

}  // namespace

Result<std::optional<CgroupRoot>> cgroups_of(const AgentFlags& flags) {
  if (flags.cgroup == "none") return std::nullopt;
  if (!flags.cgroup.empty()) {
    Result<CgroupRoot> root = open_cgroups(flags, flags.cgroup);
    if (root) return std::move(*root);
    // A slice that is not there yet, or a process that cannot be started now, may pass.
    const bool is_there = access(flags.cgroup.c_str(), F_OK) == 0;
    const bool mistake = is_there && root.error().kind == ErrorKind::kUsage;
    return fail(mistake ? ErrorKind::kUsage : ErrorKind::kIo,
                "--cgroup {}: this agent cannot put processes there: {}", flags.cgroup,
                root.error().message);
  }
  const Result<std::string> own = delegated_cgroup();
  if (!own) {
    log_info("workers run without cgroups of their own: {}", own.error().message);
    return std::nullopt;
  }
  Result<CgroupRoot> root = open_cgroups(flags, *own);
  if (root) return std::move(*root);
  log_warn("workers run without cgroups of their own, their memory is not bounded: {}",
           root.error().message);
  return std::nullopt;
}

Result<AgentFlags> complete(AgentFlags flags) {
  ANTDT_RETURN_IF_ERROR(check_mode(flags));
  if (flags.socket_dir.empty()) {
    ANTDT_TRY(flags.socket_dir, default_socket_dir(flags.listen));
  }
  if (flags.state_dir.empty()) {
    flags.state_dir =
        flags.is_private ? flags.socket_dir + "/state" : default_state_dir(flags.listen);
  }
  // Workers run in directories of their own, so the path they are given must be absolute.
  flags.socket_dir = std::filesystem::absolute(flags.socket_dir).string();
  flags.state_dir = std::filesystem::absolute(flags.state_dir).string();
  if (flags.host_name.empty()) flags.host_name = host_name();
  ANTDT_TRY(flags.address, reachable_address(flags));
  return flags;
}

NotifySettings take_settings_of_manager(const AgentFlags& flags) {
  NotifySettings asked = take_notify_settings();
  return flags.is_private ? NotifySettings{} : asked;
}

namespace {

Status make_socket_directory(const AgentFlags& flags) {
  if (!serves_many_users(flags)) return ensure_private_directory(flags.socket_dir);
  for (const char* base : {kRootStates, kRootSockets}) {
    const bool below = flags.socket_dir.starts_with(base) || flags.state_dir.starts_with(base);
    if (below) ANTDT_RETURN_IF_ERROR(ensure_passable_directory(base));
  }
  return ensure_passable_directory(flags.socket_dir);
}

}  // namespace

Result<Opened> open_agent(EventLoop& loop, transport::Context& context, const AgentFlags& flags) {
  ANTDT_RETURN_IF_ERROR(make_socket_directory(flags));
  ANTDT_TRY(std::string shim, find_shim());
  ANTDT_TRY(ProcessStore store, ProcessStore::open(flags.state_dir, serves_many_users(flags)));
  std::unique_ptr<Users> users;
  ANTDT_TRY(transport::Socket control, open_control(loop, context, flags, shim, users));
  const std::string workers_path = flags.socket_dir + "/workers.sock";
  ANTDT_TRY(transport::Socket workers,
            transport::Socket::bind_ipc(context, workers_path, kUnreadOfAWorker));
  ANTDT_TRY(std::vector<std::string> successor, successor_of(flags));
  ANTDT_TRY(std::optional<CgroupRoot> cgroups, cgroups_of(flags));
  std::string listening = control.endpoint();
  return Opened{AgentParts{std::move(store),
                           std::move(control),
                           std::move(workers),
                           {std::move(shim), workers_path, flags.socket_dir, whole_environment(),
                            std::move(successor), flags.state_dir + "/lock", hung_after(flags),
                            std::move(cgroups), flags.limit_cpus, flags.device_claims},
                           [&context, dir = flags.socket_dir](const UserIdentity& user) {
                             return open_socket_of(context, dir, user);
                           },
                           std::move(users)},
                options_of(flags), std::move(listening)};
}

Result<std::unique_ptr<metrics::MetricsServer>> open_metrics(EventLoop& loop,
                                                             const AgentFlags& flags,
                                                             const std::optional<Agent>& agent) {
  if (flags.metrics.empty()) return std::unique_ptr<metrics::MetricsServer>();
  auto server = metrics::MetricsServer::listen(
      loop, flags.metrics, [&agent] { return metrics::to_text(agent->families()); });
  if (!server) {
    const bool mistake = !is_end_point(flags.metrics, /*any=*/true);
    return fail(mistake ? ErrorKind::kUsage : ErrorKind::kUnreachable, "--metrics: {}",
                server.error().message);
  }
  log_info("metrics are at http://{}/metrics", (*server)->address());
  return server;
}

std::string devices_json(const AgentFlags& flags, const Accelerators& accelerators) {
  accelerators.await_first_look(from_seconds(flags.nvml_patience_seconds));
  const Accelerators::Look look = accelerators.look();
  DeviceLeases leases(count_devices());
  leases::Effects none;
  if (look.watched) {
    const char* const visible = std::getenv(kVisibleDevices);
    const std::string doubt = doubt_about_visible(look.devices, visible, std::getenv(kDeviceOrder));
    if (!doubt.empty()) log_warn("{}", doubt);
    auto devices = visible_devices(look.devices, visible);
    const DeviceClaims claims(flags.device_claims);
    for (wire::HostDevice& device : devices) {
      device.elsewhere = claims.is_taken_elsewhere(device.uuid);
    }
    leases.step(leases::DevicesSeen{std::move(devices), look.trouble}, none);
  } else {
    leases.step(leases::seen_without_nvml(look.missing, look.loaded, count_devices()), none);
  }
  return report::to_text(
      report::json_of(report::report_of({host_name(), leases.devices(), leases.trouble(),
                                         look.pending, leases.free(), leases.sharable()})));
}

void remove_traces(const AgentFlags& flags) {
  // A job daemon that was killed left its socket and that socket's lock.
  for (const char* socket : {"/agent.sock", "/workers.sock", "/jobd.sock"}) {
    unlink((flags.socket_dir + socket).c_str());
    unlink((flags.socket_dir + socket + ".lock").c_str());
  }
  // An agent that was killed while it wrote its environment left a partial file, and a process that
  // was given up with the job left its socket.
  const auto unlink_all = [](const std::string& directory, std::string_view prefix) {
    std::error_code error;
    std::filesystem::directory_iterator it(directory, error);
    for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().starts_with(prefix)) unlink(it->path().c_str());
    }
  };
  unlink_all(flags.state_dir, "environment");
  unlink_all(flags.socket_dir, "p-");
  for (const std::string& directory :
       {flags.state_dir + "/jobs", flags.state_dir, flags.socket_dir}) {
    rmdir(directory.c_str());
  }
}

}  // namespace antdt::antdtd
