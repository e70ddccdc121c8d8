"""Hosts that share nothing. Each is a network and a mount namespace with an agent, and a switch
that the test makes connects them. The launching host is the test's own namespace. Each host has its
own directory at the path of the run directories; all other files are the same, and stand for
installed programs and keys. Tests are skipped if namespaces cannot be made."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from harness import BIN, await_true, processes_of
from tally import TallyTest

INSIDE = "ANTDT_TEST_SEPARATE_HOSTS"
LAUNCHER = "10.78.0.1"

# The launching host is on the switch like any other, so that its wire can be cut.
SWITCH = f"""
ip link set lo up &&
ip link add switch type bridge && ip link set switch up &&
ip link add wire type veth peer name wire-a &&
ip link set wire-a master switch && ip link set wire-a up &&
ip addr add {LAUNCHER}/24 dev wire && ip link set wire up
"""
HOST = """
ip link add wire-{n} type veth peer name far-{n} &&
ip link set far-{n} netns {pid} &&
ip link set wire-{n} master switch && ip link set wire-{n} up &&
nsenter -t {pid} -n ip link set lo up &&
nsenter -t {pid} -n ip addr add {address}/24 dev far-{n} &&
nsenter -t {pid} -n ip link set far-{n} up
"""


def why_not():
    """Why no such hosts can be made here; None if they can."""
    for program in ("unshare", "nsenter", "ip", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(
        ["unshare", "-rnm", "sh", "-c", "ip link add s0 type bridge && ip link add a0 type veth "
         "peer name b0 && mount -t tmpfs none /mnt"], capture_output=True, text=True)
    return None if tried.returncode == 0 else "no namespaces here: " + tried.stderr.strip()


def run_inside(test, file, name, timeout=600):
    """Runs a class of a file's tests in namespaces of its own, for the test outside."""
    if INSIDE in os.environ:
        test.skipTest("is inside already")
    if (reason := why_not()) is not None:
        test.skipTest(reason)
    run_unshared(test, ["-rnm"], file, name, INSIDE, timeout)


def run_unshared(test, flags, file, name, inside, timeout):
    """Runs a class of a file's tests under unshare, with the variable `inside` set."""
    process = subprocess.Popen(
        ["unshare", *flags, sys.executable, file, "-v", name],
        env=dict(os.environ, **{inside: "1"}), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    print(out)
    test.assertEqual(process.returncode, 0, out)


# A job whose checkpoints have a size that the test chooses.
EMULATED = """
schema = 1
[job]
name = "copies"
seed = 5
[roles.worker]
count = {workers}
command = ["antdt-trainer"]
resources = {{ cpus = 1 }}
[data]
format = "index"
records = 100000000
[batch]
global = 32
[checkpoint]
every = "{every}"
keep = 2
copies = {copies}
[failure]
host_lost_after = "{lost_after}"
[trainer]
model = "emulated"
[emulated]
parameters = {parameters}
[[emulated.device]]
class = "any"
flat = "10ms"
per_sample = "10us"
{cluster}
"""


class Host:
    """One of these hosts, seen from outside."""

    def __init__(self, test, number, name):
        self.test = test
        self.name = name
        self.address = f"10.78.0.{number}"
        self.endpoint = f"{self.address}:7700"
        self.link_name = f"wire-{number}"
        self.agent = None
        # Each host has a directory of sockets of its own.
        sockets = test.runtime / f"{name}-user"
        sockets.mkdir(mode=0o700)
        self.env = dict(test.env, TEST_HOST=f"{test.dir}/{name}", XDG_RUNTIME_DIR=str(sockets))
        self.holder = subprocess.Popen(["unshare", "-nm", "--propagation", "private", "sleep",
                                        "infinity"])
        test.addCleanup(lambda: (self.holder.kill(), self.holder.wait()))
        own = os.readlink("/proc/self/ns/mnt")
        await_true(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/mnt") != own, 10, "a namespace")
        test.addCleanup(lambda: test.sh(f"ip link del {self.link_name}", check=False))
        test.sh(HOST.format(n=number, pid=self.holder.pid, address=self.address))
        # The namespace that has its other end may outlive the process for a moment.
        test.addCleanup(lambda: test.sh(f"ip link del {self.link_name}", check=False))

    def enter(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m"]

    def path(self, path):
        """The files of this host at a path."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{path}")

    def own_disk(self, path, size="256m"):
        """Mounts a file system of the host's own."""
        self.test.sh(" ".join(self.enter()) + f" mount -t tmpfs -o size={size} none {path}")

    def start_agent(self, keys, cpus):
        test = self.test
        log = test.dir / f"{self.name}.log"
        before = log.read_text().count("listening") if log.exists() else 0
        with open(log, "a") as out:
            self.agent = subprocess.Popen(
                [*self.enter(), str(BIN / "antdtd"), "--listen", self.endpoint, "--keys", str(keys),
                 "--state-dir", str(test.dir / f"{self.name}-state"), "--host-name", self.name,
                 "--socket-dir", str(test.runtime / self.name), "--cpus", str(cpus),
                 "--allow-root"],
                env=self.env, stdout=out, stderr=subprocess.STDOUT)
        agent = self.agent
        test.addCleanup(lambda: (agent.poll() is None and agent.terminate(), agent.wait(10)))

        def listens():
            test.assertIsNone(agent.poll(), log.read_text())
            return log.read_text().count("listening") > before
        await_true(listens, 10, f"{self.name} listens")

    def processes(self):
        """The host's processes of jobs and of the agent, without those that hold the namespaces."""
        return [pid for pid, _ in processes_of(f"TEST_HOST={self.test.dir}/{self.name}")]

    def die(self):
        """Ends all its processes, as a power failure does."""
        self.link("down")
        for _ in range(3):
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.agent.wait(10)
        await_true(lambda: not self.processes(), 10, f"{self.name} is dead")

    def come_back(self, keys, cpus):
        """The host's power is back, and its disk is unchanged."""
        self.link("up")
        self.start_agent(keys, cpus)

    def link(self, state):
        self.test.sh(f"ip link set {self.link_name} {state}")

    def fill(self, path):
        """Fills the host's disk at this path; returns the file that does."""
        hog = self.path(path) / "hog"
        for size in (64 << 10, 1 << 10):
            with open(hog, "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        return hog


class SeparateHosts(TallyTest):
    """A test whose runs are in self.runs, which is a different directory on each host."""

    def setUp(self):
        super().setUp()
        self.sh(SWITCH)
        self.addCleanup(lambda: self.sh("ip link del switch; ip link del wire", check=False))
        self.runs = self.dir / "runs"
        self.runs.mkdir()
        keys = self.antdt("keygen", "--dir", self.dir / "keys")
        self.assertEqual(keys.returncode, 0, keys.stderr)
        self.hosts = {}

    def sh(self, script, check=True):
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)

    def cut_launcher(self):
        """Cuts the launching host off from all others."""
        self.sh("ip link set wire down")

    def join_launcher(self):
        self.sh("ip link set wire up")

    def add_host(self, name, cpus=2, size="256m"):
        host = Host(self, len(self.hosts) + 2, name)
        self.hosts[name] = host
        host.own_disk(self.runs, size)
        host.start_agent(self.dir / "keys", cpus)
        return host

    def cluster(self, *hosts):
        listed = ", ".join(f'"{h if isinstance(h, str) else h.endpoint}"' for h in hosts)
        return f'[cluster]\nhosts = [{listed}]\nkeys = "{self.dir / "keys"}"\n'

    def launch(self, job, *args):
        """`antdt run` on the launching host, in the background."""
        self.count += 1
        run_dir = self.runs / f"run{self.count}"
        process = subprocess.Popen(
            [str(BIN / "antdt"), "run", str(job), "--run-dir", str(run_dir), *map(str, args)],
            env=self.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.poll() is None and process.kill(),
                                 process.communicate()))
        return process, run_dir

    def checkpoints_on(self, host, run_dir):
        """The names of the complete checkpoints and of the unfinished ones on the host."""
        directory = host.path(run_dir / "checkpoints")
        names = {p.name for p in directory.iterdir()} if directory.exists() else set()
        return ({n for n in names if n.startswith("s")}, {n for n in names if n[0] == "." and n != ".job"})

    @staticmethod
    def events(run_dir, kind):
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        return [e["text"] for e in map(json.loads, lines) if e["kind"] == kind]

    def breaks_of(self, run_dir):
        """What moved servers and ended groups, for a test that counts lineages."""
        return {kind: self.events(run_dir, kind)
                for kind in ("move", "servers", "generation-broken", "restored")}

    def assert_hosts_have_nothing_left(self, run_dir):
        """The hosts have only copies of checkpoints and logs: no process of the job, and nothing
        unfinished."""
        for host in self.hosts.values():
            agent = host.agent.pid if host.agent.poll() is None else 0
            await_true(lambda h=host, a=agent: set(h.processes()) <= {a}, 10,
                       f"{host.name}: {host.processes()}, the agent is {agent}")
            self.assertEqual(self.checkpoints_on(host, run_dir)[1], set(), host.name)
            left = [p for p in (self.runtime / host.name).iterdir() if p.name.startswith("p-")]
            self.assertEqual(left, [], host.name)
        self.assertEqual([p for p in (run_dir / "checkpoints").iterdir() if p.name[0] == "."], [])
