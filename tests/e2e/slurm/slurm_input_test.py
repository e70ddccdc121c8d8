"""What `antdt run --launcher slurm` says when something is wrong, before anything starts, and that it
leaves nothing."""

import subprocess
import sys
import time
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, BIN, await_true
from slurm_case import SlurmCase, run_inside

LISTEN = """
import socket, time
s = socket.create_server(("", {port}))
print("up", flush=True)
time.sleep(600)
"""


class Input(SlurmCase):
    def setUp(self):
        super().setUp()
        self.file = self.job()

    def start(self, env=()):
        """`antdt run` in an allocation at the login host, in the background."""
        return subprocess.Popen(
            self.cluster.as_user(
                self.login, "salloc", "--quiet", "--nodes=3", "--ntasks-per-node=1",
                "--cpus-per-task=2", "--exclusive", "--no-kill", "env", *env, ANTDT, "run", "--launcher",
                "slurm", "--run-dir", self.run_dir, self.file),
            env=self.cluster.user_env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def assert_refused(self, process, code, *words, seconds=30):
        begun = time.monotonic()
        out, _ = process.communicate(timeout=seconds)
        print(f"{self._testMethodName}: {time.monotonic() - begun:.1f} s\n{out}", flush=True)
        self.assertEqual(process.returncode, code, out)
        for word in words:
            self.assertIn(word, out)
        self.assertFalse((self.run_dir / "control.json").exists())
        self.assert_nothing_left()

    def next_port(self):
        """That of the agents of the next job."""
        done = self.cluster.run(self.login, "salloc", "--quiet", "--nodes=1", "printenv", "SLURM_JOB_ID")
        return 20000 + int(done.stdout) + 1

    def test_without_an_allocation_it_says_how_to_get_one(self):
        done = self.cluster.run(self.login, ANTDT, "run", "--launcher", "slurm", self.file)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("this is no allocation of Slurm", done.stderr)
        self.assertIn("sbatch", done.stderr)

    def test_without_srun_in_the_path_it_says_so(self):
        self.assert_refused(self.start(env=("PATH=/nowhere",)), 2, "there is no scontrol in PATH")

    def test_an_allocation_that_is_over_is_named(self):
        done = self.cluster.run(self.login, "env", "SLURM_JOB_ID=99999", "SLURM_JOB_NODELIST=n1",
                                "SLURM_JOB_CPUS_PER_NODE=2", ANTDT, "run", "--launcher", "slurm", self.file)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Invalid job id", done.stderr)
        self.assert_nothing_left()

    def test_a_node_without_the_program_is_named(self):
        self.nodes["n2"].must(f"mount -t tmpfs none {BIN}")
        try:
            self.assert_refused(self.start(), 3, "the agent was not started on n2",
                                f"no program {BIN}/antdtd", "install it there, or leave n2 out")
        finally:
            self.nodes["n2"].must(f"umount {BIN}")

    def test_a_node_where_the_port_is_in_use_is_named(self):
        port = self.next_port()
        other = subprocess.Popen(
            [*self.nodes["n3"].enter(), sys.executable, "-c", LISTEN.format(port=port)],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (other.kill(), other.communicate()))
        self.assertEqual(other.stdout.readline(), "up\n")
        process = self.start()
        await_true(lambda: process.poll() is not None, 30, "it ends")
        other.kill()
        self.assert_refused(process, 3, f"port {port} on n3 is in use", "Submit the job again")

    def test_a_node_that_a_firewall_hides_is_named_and_a_signal_ends_the_waiting(self):
        for signalled in (False, True):
            rule = f"ipproto tcp sport {self.next_port()} blackhole"
            self.nodes["n2"].must(f"ip rule add {rule}")
            try:
                process = self.start()
                if not signalled:
                    self.assert_refused(process, 3, "the agent on n2 listens, and does not answer",
                                        "firewall")
                    continue
                await_true(lambda: any(f"{BIN}/antdtd" in c for c in self.nodes["n2"].of_jobs()), 20,
                           "an agent")
                for pid, command in self.login.processes():
                    if command.startswith(f"{ANTDT} run"):
                        self.cluster.run(self.login, "kill", "-TERM", pid)
                self.assert_refused(process, 75, "nothing was started")
            finally:
                self.nodes["n2"].must(f"ip rule del {rule}")

    def test_a_node_that_is_down_is_named(self):
        self.nodes["n3"].link("down")
        try:
            process = self.start()
            await_true(lambda: process.poll() is not None, 90, "it ends")
        finally:
            self.nodes["n3"].link("up")
        self.assert_refused(process, 3, "Slurm could not start the agent on n3", "--exclude=n3")


class InNamespaces(unittest.TestCase):
    def test_bad_input(self):
        run_inside(self, __file__, "Input")


if __name__ == "__main__":
    unittest.main()
