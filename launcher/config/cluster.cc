#include "launcher/config/cluster.h"

#include <unistd.h>

#include <optional>
#include <thread>

#include "core/os/directory.h"
#include "core/os/net.h"
#include "core/os/user.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"

namespace antdt::launcher {

namespace {

// The file with the agent's public key, or "" if there is none.
std::string agent_key_file(const std::string& directory, const std::string& host_port) {
  for (const std::string& name : {host_port, host_of(host_port), std::string("cluster")}) {
    std::string file = fmt::format("{}/agents/{}.pub", directory, name);
    if (::access(file.c_str(), F_OK) == 0) return file;
  }
  return "";
}

// The agents whose public keys are in the directory, for people.
std::string known_agents(const std::string& directory) {
  std::vector<std::string> agents;
  if (const auto names = names_in(directory + "/agents")) {
    for (const std::string& name : *names) {
      if (name.ends_with(".pub")) agents.push_back(name.substr(0, name.size() - 4));
    }
  }
  return agents.empty() ? "none" : fmt::format("{}", fmt::join(agents, ", "));
}

// Time between two questions of the devices of an agent that has not looked at them yet.
constexpr Duration kAskAgain = std::chrono::milliseconds(100);

struct Agent {
  transport::Socket socket;
  std::optional<wire::AgentWelcome> welcome;
  std::string refusal;
  [[nodiscard]] bool answered() const { return welcome || !refusal.empty(); }
};

// Reads what has arrived from one agent.
void receive(Agent& agent) {
  while (const auto packet = agent.socket.receive()) {
    const auto envelope = wire::open_envelope(*packet);
    if (!envelope) continue;
    if (envelope->kind != wire::AgentWelcome::kKind && envelope->kind != wire::Refused::kKind) {
      continue;
    }
    auto welcome = wire::open_reply<wire::AgentWelcome>(*packet);
    if (welcome) {
      agent.welcome = std::move(*welcome);
    } else {
      agent.refusal = welcome.error().message;
    }
  }
}

// Reports every agent that refuses, in one error.
Status check_refusals(const std::vector<std::string>& hosts, const std::vector<Agent>& agents) {
  std::string refusals;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    if (agents[i].refusal.empty()) continue;
    refusals += fmt::format("{}the agent {} refuses: {}", refusals.empty() ? "" : "\n", hosts[i],
                            agents[i].refusal);
  }
  if (refusals.empty()) return {};
  return fail(ErrorKind::kRefused, "{}", refusals);
}

// Workers read and write the run directory of the user who starts the job, so they have to run as
// that user.
Status check_users(const std::vector<std::string>& hosts, const std::vector<Agent>& agents,
                   const std::string& own) {
  std::string wrong;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const std::string& user = agents[i].welcome->user;
    if (user.empty() || user == own) continue;
    wrong += fmt::format("\n  {}: as '{}'", hosts[i], user);
  }
  if (wrong.empty()) return {};
  return fail(
      ErrorKind::kRefused,
      "agents would start the workers of this job as another user than '{}', who starts it, "
      "and those could not use its run directory:{}\nOn each of these hosts run antdtd as "
      "root (its systemd unit does: it starts each job as its own user) and put the job's "
      "key into its authorized/ as {}.pub; or start the job as the user that is named here",
      own, wrong, own);
}

void say_hello(Agent& agent) {
  wire::Hello hello;
  hello.software = "antdt";
  [[maybe_unused]] const auto sent = agent.socket.send(wire::make_packet(hello));
}

// Says hello to all agents.
Result<std::vector<Agent>> call(transport::Context& context, const ClusterSection& cluster,
                                const ClusterKeys& keys) {
  std::vector<Agent> agents;
  for (std::size_t i = 0; i < cluster.hosts.size(); ++i) {
    ANTDT_TRY(auto socket, transport::Socket::connect_tcp(context, cluster.hosts[i], keys.job,
                                                          keys.agents[i].z85));
    agents.push_back({std::move(socket), std::nullopt, {}});
    say_hello(agents.back());
  }
  return agents;
}

// Returns the hosts whose agents say nothing.
std::vector<std::string> wait_for_answers(const std::vector<std::string>& hosts,
                                          std::vector<Agent>& agents, Duration timeout) {
  const SteadyClock clock;
  const MonoTime deadline = clock.now() + timeout;
  std::vector<std::string> silent;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    while (!agents[i].answered() && clock.now() < deadline) {
      [[maybe_unused]] const bool readable = agents[i].socket.wait_readable(deadline - clock.now());
      receive(agents[i]);
    }
    receive(agents[i]);  // another agent's answer, which arrived while one was waited for
    if (!agents[i].answered()) silent.push_back(hosts[i]);
  }
  return silent;
}

// An agent that began just now may not know its devices yet: asks again until each has looked at
// them, or says why it cannot. Those that still do not know at the deadline have none.
void wait_for_devices(std::vector<Agent>& agents, Duration timeout) {
  const SteadyClock clock;
  const MonoTime deadline = clock.now() + timeout;
  for (Agent& agent : agents) {
    while (agent.welcome && agent.welcome->host_devices.pending && clock.now() < deadline) {
      say_hello(agent);
      [[maybe_unused]] const bool readable = agent.socket.wait_readable(kAskAgain);
      receive(agent);
      if (agent.welcome->host_devices.pending) std::this_thread::sleep_for(kAskAgain);
    }
  }
}

}  // namespace

Status check_answers(const std::vector<std::string>& silent, Duration timeout,
                     const std::string& keys) {
  if (silent.empty()) return {};
  return fail(ErrorKind::kUnreachable,
              "no answer within {:g} s from {}. `antdt doctor --hosts {} --keys {}` says whether "
              "antdtd, the keys or a firewall is the reason",
              to_seconds(timeout), fmt::join(silent, ", "), fmt::join(silent, ","), keys);
}

Result<ClusterKeys> load_cluster_keys(const ClusterSection& cluster) {
  ClusterKeys keys;
  std::string missing;
  if (::access((cluster.keys + "/job.key").c_str(), F_OK) != 0) {
    missing += fmt::format(
        "\n  {} has no job.key: copy it from where the keys were made; what antdt keygen --user "
        "USER made is in users/USER there",
        cluster.keys);
  }
  for (const std::string& host : cluster.hosts) {
    if (!agent_key_file(cluster.keys, host).empty()) continue;
    missing += fmt::format(
        "\n  {} has no key of the agent '{}' (it has: {}). Name the host in cluster.hosts as in "
        "`antdt keygen --agent NAME`, or copy users/USER from where the keys were made",
        cluster.keys, host_of(host), known_agents(cluster.keys));
  }
  if (!missing.empty()) {
    return fail(ErrorKind::kUsage, "keys for the agents of cluster.hosts are missing:{}", missing);
  }
  ANTDT_TRY(keys.job, transport::load_key_pair(cluster.keys + "/job.key"));
  for (const std::string& host : cluster.hosts) {
    ANTDT_TRY(auto key, transport::load_public_key(agent_key_file(cluster.keys, host)));
    keys.agents.push_back(std::move(key));
  }
  return keys;
}

Result<std::vector<HostResources>> ask_agents(transport::Context& context,
                                              const ClusterSection& cluster,
                                              const ClusterKeys& keys, Patience patience) {
  ANTDT_TRY(std::vector<Agent> agents, call(context, cluster, keys));
  const Status answered =
      check_answers(wait_for_answers(cluster.hosts, agents, patience.for_an_answer),
                    patience.for_an_answer, cluster.keys);
  ANTDT_RETURN_IF_ERROR(check_refusals(cluster.hosts, agents));
  ANTDT_RETURN_IF_ERROR(answered);
  ANTDT_RETURN_IF_ERROR(check_users(cluster.hosts, agents, own_user().name));
  wait_for_devices(agents, patience.for_devices);
  std::vector<HostResources> resources;
  std::string drained;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const wire::AgentWelcome& w = *agents[i].welcome;
    if (w.drain) {  // the job may use it later
      drained += fmt::format("\n  {}: {}", cluster.hosts[i], wire::to_text(*w.drain));
      continue;
    }
    resources.push_back(resources_of(cluster.hosts[i], w));
  }
  if (resources.empty() && !drained.empty()) {
    return fail(ErrorKind::kUnreachable,
                "all hosts are drained, so nothing is started there until antdt undrain HOST:{}",
                drained);
  }
  return resources;
}

Result<std::vector<std::string>> absent_agents(transport::Context& context,
                                               const ClusterSection& cluster,
                                               const ClusterKeys& keys, Duration timeout) {
  ANTDT_TRY(std::vector<Agent> agents, call(context, cluster, keys));
  std::vector<std::string> silent = wait_for_answers(cluster.hosts, agents, timeout);
  ANTDT_RETURN_IF_ERROR(check_refusals(cluster.hosts, agents));
  if (silent.size() == agents.size())
    ANTDT_RETURN_IF_ERROR(check_answers(silent, timeout, cluster.keys));
  return silent;
}

Result<std::vector<std::string>> silent_agents(transport::Context& context,
                                               const ClusterSection& cluster,
                                               const ClusterKeys& keys, Duration timeout) {
  ANTDT_TRY(std::vector<Agent> agents, call(context, cluster, keys));
  return wait_for_answers(cluster.hosts, agents, timeout);
}

}  // namespace antdt::launcher
