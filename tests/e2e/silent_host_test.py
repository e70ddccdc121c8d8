"""A host that falls silent without closing its connections: its link goes down, as
when a switch dies or a cable is pulled. In a network of this test's own, two
namespaces and a wire between them; skipped where none can be made."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from harness import BIN, EndToEnd, await_true, processes_of

INSIDE = "ANTDT_TEST_NETWORK"
HERE, THERE = "10.77.0.1", "10.77.0.2"

# The first host is this namespace, the second that of $other; `wire` is our end.
NETWORK = f"""
ip link set lo up &&
ip link add wire type veth peer name wire2 &&
ip link set wire2 netns $other &&
ip addr add {HERE}/24 dev wire && ip link set wire up &&
nsenter -t $other -n ip link set lo up &&
nsenter -t $other -n ip addr add {THERE}/24 dev wire2 &&
nsenter -t $other -n ip link set wire2 up
"""

JOB = """
schema = 1
[job]
name = "silent"
[roles.worker]
count = 2
protocol = "exec"
command = ["sh", "-c", "echo up; while [ ! -e {go} ]; do sleep 0.05; done"]
resources = {{ cpus = 1 }}
[cluster]
hosts = ["{here}:7700", "{there}:7700"]
keys = "{keys}"
[failure]
host_lost_after = "2s"
orphan_timeout = "{orphan_timeout}"
"""


def why_not():
    """Why no network of its own can be made here; None if it can."""
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(["unshare", "-rn", "ip", "link", "add", "a0", "type", "veth", "peer",
                            "name", "b0"], capture_output=True, text=True)
    return None if tried.returncode == 0 else "no veth here: " + tried.stderr.strip()


class TwoNetworks(EndToEnd):
    """Two hosts, an agent on each; inside only."""

    def setUp(self):
        super().setUp()
        self.other = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self.addCleanup(lambda: (self.other.kill(), self.other.wait()))
        self.assertNotEqual(os.readlink("/proc/self/ns/net"), "")
        own = os.readlink("/proc/self/ns/net")
        await_true(lambda: os.readlink(f"/proc/{self.other.pid}/ns/net") != own, 10, "a namespace")
        made = subprocess.run(["sh", "-c", NETWORK], env=dict(os.environ,
                              other=str(self.other.pid)), capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.addCleanup(lambda: subprocess.run(["ip", "link", "del", "wire"], check=False))
        keys = self.antdt("keygen", "--dir", self.dir / "keys")
        self.assertEqual(keys.returncode, 0, keys.stderr)

    def agent(self, name, address, enter=()):
        log = open(self.dir / f"{name}.log", "w")
        process = subprocess.Popen(
            [*enter, str(BIN / "antdtd"), "--listen", f"{address}:7700", "--keys",
             str(self.dir / "keys"), "--state-dir", str(self.dir / f"{name}-state"),
             "--host-name", name, "--socket-dir", str(self.runtime / name), "--cpus", "1",
             "--allow-root"], env=self.env, stdout=log, stderr=subprocess.STDOUT)
        log.close()
        self.addCleanup(lambda: (process.poll() is None and process.terminate(),
                                 process.wait(10)))
        await_true(lambda: "listening" in pathlib.Path(log.name).read_text(), 10,
                   f"{name} listens")
        return process

    def both_agents(self):
        self.agent("hosta", HERE)
        return self.agent("hostb", THERE, ("nsenter", "-t", str(self.other.pid), "-n"))

    def link(self, state):
        subprocess.run(["ip", "link", "set", "wire", state], check=True)


@unittest.skipUnless(INSIDE in os.environ, "runs in a network of its own only")
class SilentHost(TwoNetworks):
    def job(self, name, orphan_timeout):
        return self.write(name, JOB.format(go=self.dir / "go", here=HERE, there=THERE,
                                           keys=self.dir / "keys", orphan_timeout=orphan_timeout))

    def workers_there(self):
        """Processes of jobs below the second agent, by its socket in their environment.
        Not the naps of their shells, which come and go."""
        socket = self.runtime / "hostb" / "workers.sock"
        return [pid for pid, command in processes_of(f"ANTDT_SOCKET={socket}")
                if not command.startswith("sleep")]

    def start_both_workers(self, orphan_timeout):
        process, run_dir = self.start_job(self.job("job.toml", orphan_timeout))

        def both_up():
            self.assertIsNone(process.poll(), "the job ended early")
            return all((run_dir / "logs" / f"w{i}.1.out").exists() for i in (0, 1))
        await_true(both_up, 60, "both workers run")
        self.assertNotEqual(self.workers_there(), [])
        return process, run_dir

    def test_a_host_that_hears_nothing_ends_its_workers_and_serves_the_next_job(self):
        agent = self.both_agents()
        process, _ = self.start_both_workers(orphan_timeout="4s")
        self.link("down")
        # Long before the link is back: by the host itself, which nobody can reach.
        await_true(lambda: not self.workers_there(), 60, "the silent host ended its workers")
        self.assertIsNone(agent.poll(), "the agent itself lives")
        log = (self.dir / "hostb.log").read_text()
        self.assertIn("its daemon has been silent", log)
        (self.dir / "go").touch()
        self.link("up")
        process.communicate(timeout=120)
        await_true(lambda: not self.workers_there(), 60, "nothing of the first job runs there")
        run = self.run_job(self.job("next.toml", "4s"), timeout=120)
        self.assert_done(run)
        self.assertEqual({w["host"] for w in run.summary["workers"]}, {"hosta", "hostb"})

    def test_what_a_lost_host_still_runs_is_ended_when_the_link_is_back(self):
        self.both_agents()
        # It would be an hour until the host ends them by itself.
        process, run_dir = self.start_both_workers(orphan_timeout="3600s")
        lost = self.workers_there()
        self.link("down")
        await_true(lambda: process.poll() is not None or
                   '"host-lost"' in (run_dir / "events.jsonl").read_text(), 60,
                   "the job daemon gives the host up")
        self.assertEqual(set(lost) & set(self.workers_there()), set(lost), "nobody told it")
        self.link("up")
        await_true(lambda: not set(lost) & set(self.workers_there()), 60,
                   "the attempts that the job gave up are ended")
        (self.dir / "go").touch()
        process.communicate(timeout=120)
        await_true(lambda: not self.workers_there(), 60, "nothing of the job runs there")

    def test_a_link_that_is_away_for_a_moment_changes_nothing(self):
        self.both_agents()
        process, run_dir = self.start_both_workers(orphan_timeout="60s")
        self.link("down")
        self.link("up")
        (self.dir / "go").touch()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual([w["attempt"] for w in summary["workers"]], [1, 1])


def run_inside(test, file, name):
    """Runs a class of a file's tests in a network of its own, for the test outside."""
    if INSIDE in os.environ:
        test.skipTest("is inside already")
    if (reason := why_not()) is not None:
        test.skipTest(reason)
    process = subprocess.Popen(
        ["unshare", "-rn", sys.executable, file, "-v", name],
        env=dict(os.environ, **{INSIDE: "1"}), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    print(out)
    test.assertEqual(process.returncode, 0, out)


class InANetworkOfItsOwn(unittest.TestCase):
    def test_silent_hosts(self):
        run_inside(self, __file__, "SilentHost")


if __name__ == "__main__":
    unittest.main()
