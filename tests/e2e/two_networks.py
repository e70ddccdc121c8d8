"""Two hosts in network namespaces of their own, with a wire between them that can be cut. Tests are
skipped if namespaces cannot be made."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from harness import BIN, EndToEnd, await_true

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


def why_not():
    """Why no network namespaces can be made here; None if they can."""
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(["unshare", "-rn", "ip", "link", "add", "a0", "type", "veth", "peer",
                            "name", "b0"], capture_output=True, text=True)
    return None if tried.returncode == 0 else "no veth here: " + tried.stderr.strip()


class TwoNetworks(EndToEnd):
    """Two hosts with an agent on each, for tests that run inside the namespaces."""

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
