#include "launcher/slurm/agent_step.h"

#include <fmt/format.h>

namespace antdt::launcher {
namespace {

// At the time limit Slurm sends SIGTERM to every process of a step. The shell ignores it and so
// still removes the directory, by which the shims end whatever the agent left.
//
// A node that is given back gets SIGKILL without a warning, so the directory stays there. It holds
// no secret then, because the agent's key is removed once the agent has read it, and the next agent
// of the same user on that node removes it: nobody holds its lock. It gets its name when it is
// locked.
//
// The agent touches what is in its directory of state once a day, so the job's public key is there:
// if a cleaner of /tmp removed it, the agent would take the job's right away.
constexpr const char* kScript = R"(umask 077
trap : TERM
[ -x "$1" ] || { echo "antdt: there is no program $1 on this node"; exit 1; }
t=${TMPDIR:-/tmp}
for old in "$t"/antdt-slurm-*; do
  [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] && [ -f "$old/lock" ] || continue
  flock -n "$old/lock" rm -rf "$old"
done
new=$(mktemp -d "$t/antdt-new-XXXXXX") || exit 1
exec 9> "$new/lock" || exit 1
flock 9
d=$t/antdt-slurm-${new##*-}
mv "$new" "$d" || exit 1
k=$d/state/keys
mkdir -p "$k/authorized" || exit 1
take() { while IFS= read -r l && [ "$l" != . ]; do printf '%s\n' "$l"; done; }
take > "$k/agent.key"
take > "$k/authorized/job.pub"
exec 3<&0 < /dev/null
"$@" --keys "$k" --socket-dir "$d/s" --state-dir "$d/state" 3<&- &
agent=$!
{ exec 9>&-; cat <&3 > /dev/null; kill -TERM $agent; } &
until [ -S "$d/s/workers.sock" ] || ! kill -0 $agent 2> /dev/null; do sleep 0.1; done
rm -f "$k/agent.key"
wait $agent
while kill -0 $agent 2> /dev/null; do wait $agent; done
rm -rf "$d"
)";

}  // namespace

std::vector<std::string> srun_arguments(const AgentStep& step) {
  std::vector<std::string> arguments = {"--nodes=1",
                                        "--ntasks=1",
                                        "--nodelist=" + step.node,
                                        "--overlap",
                                        "--mem=0",
                                        fmt::format("--cpus-per-task={}", step.cpus),
                                        "--no-kill",
                                        "--cpu-bind=none",
                                        "--job-name=antdt-agent",
                                        "--quiet",
                                        "--unbuffered",
                                        "/bin/sh",
                                        "-c",
                                        kScript,
                                        "antdt-agent",
                                        step.program,
                                        "--listen",
                                        step.listen,
                                        "--host-name",
                                        step.node,
                                        "--cpus",
                                        fmt::format("{}", step.cpus)};
  if (step.memory_bytes > 0) {
    arguments.insert(arguments.end(), {"--memory", fmt::format("{}", step.memory_bytes)});
  }
  if (step.allow_root) arguments.emplace_back("--allow-root");
  return arguments;
}

std::string handover(const std::string& agent_key, const std::string& job_pub) {
  const auto ended = [](const std::string& text) {
    return text.ends_with('\n') || text.empty() ? text : text + "\n";
  };
  return ended(agent_key) + ".\n" + ended(job_pub) + ".\n";
}

}  // namespace antdt::launcher
