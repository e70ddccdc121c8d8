"""The agent through which a job is watched does not answer for a while. Nobody takes that for the job's
end."""

import json
import os
import signal
import subprocess
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, await_true
from hosts import Hosts

JOB = """
schema = 1
[job]
name = "watched"
[roles.worker]
count = 1
protocol = "exec"
command = ["sh", "-c", "echo up; while :; do sleep 0.1; done"]
resources = { cpus = 1 }
[failure]
host_lost_after = "120s"
orphan_timeout = "120s"
"""


class AwayAgent(Hosts):
    def watcher(self, name, *args):
        """A command whose errors are in a file; (process, that file)."""
        errors = self.dir / f"{name}.err"
        with open(self.dir / f"{name}.out", "w") as out, open(errors, "w") as err:
            process = subprocess.Popen([str(ANTDT), *map(str, args)], env=self.env, cwd=self.dir,
                                       stdout=out, stderr=err)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.wait(10)))
        return process, errors

    def begin(self):
        keys = self.keys("keys")
        host = self.agent("hosta", keys)
        process, run_dir = self.start_job(self.write("job.toml", JOB + self.cluster([host], keys)))

        def runs():
            self.assertIsNone(process.poll(), "the job ended early")
            return (run_dir / "logs" / "w0.1.out").exists()
        await_true(runs, 60, "the worker runs")
        job = json.loads((run_dir / "control.json").read_text())["job"]
        return process, run_dir, host, job, ["--agent", host, "--keys", keys]

    def test_those_who_give_orders_are_told_which_agent_is_away(self):
        process, run_dir, host, job, through = self.begin()
        agent = self.agent_pids["hosta"]
        self.addCleanup(os.kill, agent, signal.SIGCONT)
        os.kill(agent, signal.SIGSTOP)
        attached, why = self.watcher("attach", "attach", job, *through)
        orders = {"stop": self.watcher("stop", "stop", job, *through),
                  "evict": self.watcher("evict", "evict", job, "w0", *through)}
        away = f"no answer from the agent {host}"
        await_true(lambda: away in why.read_text(), 30, "attach says so")
        attached.send_signal(signal.SIGINT)
        self.assertEqual(attached.wait(10), 130)
        for name, (order, said) in orders.items():
            self.assertEqual(order.wait(90), 3, name)
            self.assertIn(f"from {host}. `antdt doctor --hosts {host} --keys", said.read_text())
        self.assertIn(away, orders["stop"][1].read_text())
        os.kill(agent, signal.SIGCONT)
        # What is given to an agent that has not noticed that its link is over may be lost.
        await_true(lambda: (run_dir / "events.jsonl").read_text().count(" is there, with room") == 2,
                   60, "the job daemon has the agent again")
        stopped = self.antdt("stop", job, *through, timeout=60)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertIn(f"{job} has left {host}", stopped.stdout)
        process.communicate(timeout=60)

    def test_those_who_watch_the_job_wait_for_it(self):
        process, _, host, job, through = self.begin()
        agent = self.agent_pids["hosta"]
        attached, why = self.watcher("attach", "attach", job, *through)
        status, complaints = self.watcher("status", "status", job, "--watch", "--json", *through)
        shown = self.dir / "status.out"
        await_true(lambda: shown.stat().st_size > 0, 30, "the status")

        self.addCleanup(os.kill, agent, signal.SIGCONT)
        os.kill(agent, signal.SIGSTOP)

        def complained_again_and_again():
            self.assertIsNone(status.poll(), complaints.read_text())
            return complaints.read_text().count("\n") >= 3
        await_true(complained_again_and_again, 90, "it does not answer")
        self.assertIsNone(attached.poll(), why.read_text())
        before = shown.stat().st_size
        os.kill(agent, signal.SIGCONT)
        await_true(lambda: shown.stat().st_size > before, 30, "the status is shown again")

        stopped = self.antdt("stop", job, *through, timeout=60)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertIn(f"{job} has left {host}", stopped.stdout)
        self.assertEqual(attached.wait(60), 3)
        self.assertIn(f"does not have job {job} any more", why.read_text())
        status.wait(60)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)


if __name__ == "__main__":
    unittest.main()
