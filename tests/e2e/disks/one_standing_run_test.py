"""The files of one of two runs are on a filesystem that does not answer. Commands about the other run, and
about all of them, go on, and those about this run ask its job daemon or say what they wait for."""

import json
import os
import pathlib
import time
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import EndToEnd, await_true

JOB = """
schema = 1
[job]
name = "{name}"
[roles.worker]
count = 2
protocol = "exec"
command = ["sh", "-c", "echo up; exec sleep 1000"]
resources = {{ cpus = 0 }}
"""
NO_ANSWER = "has not answered for 3 s"


class OneStandingRun(EndToEnd):
    def begin(self, name):
        job = self.write(f"{name}.toml", JOB.format(name=name))
        done = self.antdt("run", job, "--detach", "--json", timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run = json.loads(done.stdout)
        log = pathlib.Path(run["run_dir"]) / "logs" / "w0.1.out"
        await_true(lambda: log.exists() and log.read_text(), 60, "a worker runs")
        return run["job"], pathlib.Path(run["run_dir"])

    @staticmethod
    def stand(run_dir):
        """Who opens the lock file of this job daemon waits from now on. What is returned ends that."""
        lock, away = run_dir / "jobd.lock", run_dir / "away"
        lock.rename(away)
        os.mkfifo(lock)
        return lambda: away.replace(lock)

    def says(self, *args, code=0):
        """What antdt prints; that it returns at all is the point."""
        begun = time.monotonic()
        done = self.antdt(*args, timeout=60)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        self.assertLess(time.monotonic() - begun, 30, args)
        return done.stdout + done.stderr

    def test_commands_about_other_runs_go_on(self):
        healthy, healthy_dir = self.begin("healthy")
        standing, standing_dir = self.begin("standing")
        answer = self.stand(standing_dir)
        self.assertIn("up", self.says("logs", healthy))
        self.assertIn("up", self.says("logs", healthy[:-3]))  # the beginning of its id
        self.assertRegex(self.says("status", healthy_dir), r"(?m)^\s*w1 ")
        jobs = {run["job"]: run for run in json.loads(self.says("jobs", "--json"))}
        self.assertEqual((jobs[healthy]["state"], jobs[healthy]["workers"]), ("training", 2))
        self.assertEqual(jobs[standing]["state"], "its filesystem does not answer")
        self.assertEqual((jobs[standing]["running"], jobs[standing]["workers"]), (True, 2))
        top = self.says("top", "--once")
        self.assertIn(healthy, top)
        self.assertIn(standing, top)
        self.assertNotIn("does not answer", top)
        self.assertIn("stopping", self.says("stop", healthy, "--no-wait"))
        answer()
        self.says("stop", standing)

    def test_commands_about_this_run_ask_its_job_daemon(self):
        job, run_dir = self.begin("standing")
        answer = self.stand(run_dir)
        for name in ((), (job,), (job[:-3],), (run_dir,)):  # the newest, its id, its beginning, its directory
            self.assertRegex(self.says("status", *name), r"(?m)^\s*w1 ")
        self.assertIn("w0", self.says("explain", job, "w0"))
        self.assertIn("w1 is asked to leave", self.says("evict", job, "w1", "--no-wait"))
        for command in (("logs", job), ("attach", job), ("data", "audit", run_dir)):
            self.assertIn(f"the filesystem of {run_dir} {NO_ANSWER}", self.says(*command, code=3))
        self.assertIn("stopping", self.says("stop", job, "--no-wait"))
        answer()
        await_true(lambda: (run_dir / "summary.json").exists(), 60, "it has stopped")
        self.assertIn("stopped", self.says("status", run_dir))


if __name__ == "__main__":
    unittest.main()
