#include "launcher/doctor/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/os/net.h"

namespace antdt::launcher {
namespace {

constexpr std::uint64_t kSlowNameUs = 500'000;

std::string mode_text(std::uint32_t mode) { return fmt::format("{:04o}", mode & 07777U); }

void judge_key(const KeyFacts& key, Findings& findings) {
  Finding finding{Level::kOk,
                  "this host",
                  "keys",
                  key.path,
                  fmt::format("mode {}", mode_text(key.mode)),
                  "agents serve whoever has a key that they know, so a secret key is for its user "
                  "alone",
                  ""};
  if (key.missing) {
    finding.level = Level::kError;
    finding.found = "there is no such file";
    finding.why = "without it no agent answers";
    finding.advice = key.secret
                         ? "copy it from where antdt keygen made the keys; the key of a user "
                           "whom it made with --user is in users/USER there"
                         : "name the host as in antdt keygen --agent NAME, or copy the "
                           "file from where the keys were made";
  } else if (!key.error.empty()) {
    finding.level = Level::kError;
    finding.found = key.error;
    finding.why = "antdt run reads it to reach the agents";
    finding.advice = "make it readable for your user, or make it anew with antdt keygen";
  } else if (key.secret && (key.mode & 0077U) != 0) {
    finding.level = Level::kError;
    finding.found = fmt::format("mode {}: others may read or change it", mode_text(key.mode));
    finding.why += "; antdt run refuses to use it like this";
    finding.advice =
        fmt::format("chmod 600 {}; if others can enter the directory, make a new key", key.path);
  } else if ((key.mode & 0022U) != 0 || key.other_owner) {
    finding.level = Level::kWarning;
    finding.found = key.other_owner
                        ? "it belongs to another user"
                        : fmt::format("mode {}: others may change it", mode_text(key.mode));
    finding.why = "whoever can replace the key of an agent can pose as that agent";
    finding.advice = fmt::format("chown and chmod go-w {}", key.path);
  }
  findings.push_back(std::move(finding));
}

// What hinders a link from here to an agent; false if it answers.
bool judge_agent(const HostFacts& host, Findings& findings) {
  const ReachFacts& reach = host.reach;
  Finding finding{Level::kError,
                  label(host),
                  "agent",
                  fmt::format("the agent at {}, from this host", host.name),
                  "",
                  "antdt run asks every agent of cluster.hosts and starts nothing if one is away",
                  ""};
  if (!reach.connect_error.empty()) {
    finding.found = reach.connect_error;
    finding.advice =
        "start antdtd there (systemctl status antdtd), compare the port with its --listen, and let "
        "the port through its firewall and those in between";
  } else if (!reach.refused.empty()) {
    finding.found = "it refuses: " + reach.refused;
    finding.advice = "do what the refusal says on that host";
  } else if (reach.silent) {
    finding.found = "its port accepts connections, and nothing that knows our key answers";
    finding.advice =
        "put your job.pub into authorized/ of its keys as USER.pub; copy its present agent.pub to "
        "agents/ of yours; see whether another program has the port";
  } else if (!host.welcome) {
    return true;  // the name is the problem
  } else {
    finding.level = Level::kOk;
    finding.found = fmt::format("it answers as {} and would start processes as the user {}",
                                host.welcome->host, host.welcome->user);
  }
  findings.push_back(std::move(finding));
  return host.welcome.has_value();
}

void judge_user(const HostFacts& host, const Facts& facts, Findings& findings) {
  const std::string& user = host.welcome->user;
  if (user.empty() || user == facts.user) return;
  findings.push_back({Level::kError, label(host), "user",
                      "the user as whom the agent would start your processes",
                      fmt::format("'{}', and you are '{}'", user, facts.user),
                      "workers read and write the run directory of the user who starts the job",
                      fmt::format("run antdtd there as root, with your job.pub in authorized/ as "
                                  "{}.pub; or start the job as '{}'",
                                  facts.user, user)});
}

// The address that the agent hands to workers of other hosts.
void judge_address(const HostFacts& host, const Facts& facts, Findings& findings) {
  const std::string& address = host.welcome->address;
  const auto agents = std::ranges::count(facts.hosts, false, &HostFacts::here);
  const bool loops = address.starts_with("127.") || address == "::1";
  const bool own = host_of(host.name).starts_with("127.") || host_of(host.name) == "::1";
  if (!loops || own || agents < 2) return;
  findings.push_back({Level::kError, label(host), "address",
                      "the address at which workers of other hosts are to reach its workers",
                      address + ", which is every host itself",
                      "workers of other hosts would connect to themselves",
                      "start its antdtd with --interface or --address"});
}

void judge_told(const HostFacts& host, Findings& findings) {
  if (host.reach.not_told.empty()) return;
  findings.push_back(
      {Level::kWarning, label(host), "version", "whether the agent answers what doctor asks",
       "no: " + host.reach.not_told,
       "an agent of an earlier release does not know these questions, so nothing more is known of "
       "its host",
       "install the release of this host there, and restart antdtd: its jobs go on"});
}

}  // namespace

std::string label(const HostFacts& host) {
  if (host.here) return "this host";
  if (!host.welcome || host.welcome->host.empty() || host.welcome->host == host_of(host.name)) {
    return host.name;
  }
  return fmt::format("{} at {}", host.welcome->host, host.name);
}

void judge_keys(const Facts& facts, Findings& findings) {
  for (const KeyFacts& key : facts.keys) judge_key(key, findings);
}

void judge_reach(const HostFacts& host, const Facts& facts, Findings& findings) {
  if (host.here) return;
  const ReachFacts& reach = host.reach;
  const bool slow = reach.resolve_us > kSlowNameUs;
  if (!reach.resolve_error.empty()) {
    findings.push_back({Level::kError, label(host), "name",
                        fmt::format("the address of {}", host_of(host.name)), reach.resolve_error,
                        "no connection can be made to a name without an address",
                        "correct the name, its entry in DNS or in /etc/hosts, or write the "
                        "address into cluster.hosts"});
  } else if (slow) {
    findings.push_back(
        {Level::kWarning, label(host), "name", fmt::format("the address of {}", host_of(host.name)),
         fmt::format("{}, after {:.1f} s", fmt::join(reach.addresses, ", "),
                     static_cast<double>(reach.resolve_us) / 1e6),
         "each new connection to the name waits for that",
         "mend the first name server of /etc/resolv.conf, or write the host into /etc/hosts"});
  } else {
    findings.push_back(
        {Level::kOk, label(host), "name", fmt::format("the address of {}", host_of(host.name)),
         fmt::format("{}", fmt::join(reach.addresses, ", ")), "agents are reached by it", ""});
  }
  if (!judge_agent(host, findings) || !host.welcome) return;
  judge_user(host, facts, findings);
  judge_address(host, facts, findings);
  judge_told(host, findings);
}

Findings judge(const Facts& facts) {
  Findings findings;
  if (facts.job_error) {
    findings.push_back({Level::kError, "this host", "job", "the job's file", *facts.job_error,
                        "antdt run reads it the same way", "correct what is named"});
  }
  judge_keys(facts, findings);
  for (const HostFacts& host : facts.hosts) {
    judge_reach(host, facts, findings);
    judge_host(host, findings);
    judge_devices(host, findings);
    judge_disks(host, findings);
  }
  judge_together(facts, findings);
  judge_store(facts, findings);
  judge_links(facts, findings);
  return findings;
}

}  // namespace antdt::launcher
