"""A job from the prompt of `salloc`: Ctrl-C asks for a checkpoint, and nothing is left on any host, also
if `antdt run` is killed or the terminal is closed."""

import os
import pty
import signal
import subprocess
import threading
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, await_true
from slurm_case import SlurmCase, run_inside


# An interactive shell that finds itself in the background stops, and `salloc` puts its command into the
# foreground only after it was started, without a word to a command that has stopped by then. So the
# shell begins once it is there.
SHELL = """
until read -r _ _ _ _ group _ _ foreground _ < /proc/$$/stat && [ "$group" = "$foreground" ]; do
  sleep 0.01
done
exec bash --norc --noprofile
"""


class Prompt:
    """A shell in an allocation, on a terminal of its own."""

    def __init__(self, test, *options):
        cluster = test.cluster
        self.master, slave = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *cluster.as_user(test.login, "salloc", *options, "sh", "-c", SHELL)],
            env=dict(cluster.user_env, PS1="ready> ", TERM="dumb"), stdin=slave, stdout=slave,
            stderr=slave)
        os.close(slave)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        test.addCleanup(self.end)
        self.expect("ready> ", 20)

    def read(self):
        while True:
            try:
                got = os.read(self.master, 4096)
            except OSError:
                return
            if not got:
                return
            self.text += got.decode(errors="replace")

    def expect(self, what, seconds):
        """Waits for a text, and forgets what came before."""
        try:
            await_true(lambda: what in self.text, seconds, f"{what} at the prompt")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.text[-3000:]}") from error
        before, self.text = self.text.split(what, 1)
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def leave(self):
        self.type("exit\n")
        self.process.wait(20)

    def close(self):
        """Closes the terminal, as the loss of the connection to the login host does."""
        os.close(self.master)
        self.master = -1

    def end(self):
        if self.master >= 0:
            self.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class AtThePrompt(SlurmCase):
    OPTIONS = ("--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=2", "--exclusive", "--no-kill")

    def run_line(self, *more, srun=""):
        return f"{srun} {ANTDT} run --launcher slurm {' '.join(map(str, more))}; echo status $(($?))\n"

    def launcher(self):
        return [p for p, c in self.login.processes() if c.startswith(f"{ANTDT} run")]

    def assert_only_the_prompt_is_left(self):
        self.assert_nothing_left("login")
        self.await_empty(lambda: [c for c in self.login.of_jobs() if not c.startswith(("salloc", "bash"))],
                         "processes on the login host")
        self.await_empty(lambda: self.files(self.login), "files on the login host")

    def test_ctrl_c_stores_a_checkpoint_and_the_run_goes_on_with_the_nodes_that_are_left(self):
        prompt = Prompt(self, *self.OPTIONS)
        prompt.type(self.run_line("--run-dir", self.run_dir, self.job(records=9000)))
        self.await_training(self.login, samples=500)
        prompt.type("\x03")
        prompt.expect("stopping after a checkpoint", 10)
        prompt.expect("status 75", 20)
        self.assert_only_the_prompt_is_left()
        prompt.type("scontrol update JobId=$SLURM_JOB_ID NumNodes=2; echo given $?\n")
        prompt.expect("given 0", 10)
        prompt.type(self.run_line("--resume", self.run_dir))
        prompt.expect("status 0", 40)
        self.assert_only_the_prompt_is_left()
        self.assertEqual((self.run_dir / "effective.toml").read_text().count(":2000"), 2)
        prompt.leave()
        self.assert_exact()
        self.assert_nothing_left()

    def test_ctrl_c_reaches_a_job_that_srun_began_on_a_node(self):
        prompt = Prompt(self, *self.OPTIONS)
        prompt.type(self.run_line("--run-dir", self.run_dir, self.job(records=9000),
                                  srun="srun --nodes=1 --ntasks=1 --nodelist=n1 --pty"))
        self.await_training(self.nodes["n1"], samples=500)
        prompt.type("\x03")
        prompt.expect("stopping after a checkpoint", 10)
        prompt.expect("status 75", 20)
        self.say("stopped")
        self.assert_only_the_prompt_is_left()
        prompt.leave()

    def test_nothing_is_left_of_a_command_that_is_killed_and_of_a_terminal_that_is_closed(self):
        prompt = Prompt(self, *self.OPTIONS)
        prompt.type(self.run_line("--run-dir", self.run_dir, self.job(records=12000)))
        self.await_training(self.login, samples=500)
        for pid in self.launcher():
            os.kill(pid, signal.SIGKILL)
        prompt.expect("status 137", 10)
        self.assert_only_the_prompt_is_left()
        prompt.type(self.run_line("--resume", self.run_dir))
        self.await_training(self.login)
        prompt.close()
        prompt.process.wait(20)
        self.assert_nothing_left()


class InNamespaces(unittest.TestCase):
    def test_jobs_at_the_prompt(self):
        run_inside(self, __file__, "AtThePrompt")


if __name__ == "__main__":
    unittest.main()
