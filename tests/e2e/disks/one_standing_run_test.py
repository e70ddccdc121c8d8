"""The files of one of two runs are on a filesystem that does not answer, or only with errors. Commands about
the other run, and about all of them, go on, and those about this run ask its job daemon or say what they
wait for."""

import json
import os
import pathlib
import subprocess
import time
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import ANTDT, BIN, EndToEnd, await_true

LIBRARY = BIN.parent / "tests" / "libantdt_slow_path.so"

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

        def answer():
            end = os.open(lock, os.O_RDWR)  # who waits goes on
            away.replace(lock)
            os.close(end)
        return answer

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
        self.assertEqual((jobs[standing]["state"], jobs[standing]["workers"]), ("training", 2))
        self.assertTrue(jobs[standing]["running"])
        self.assertRegex(self.says("jobs"), rf"(?m)^{standing}: .*has not answered")
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

    @unittest.skipUnless(LIBRARY.exists(), "the unit tests' library is not built")
    def test_a_run_whose_files_answer_with_an_error_has_not_broken_off(self):
        job, run_dir = self.begin("stale")
        usual, self.env = self.env, dict(
            self.env, LD_PRELOAD=str(LIBRARY), ANTDT_TEST_SLOW_PATH=str(run_dir),
            ANTDT_TEST_SLOW_CONTROL=str(self.write("control", "fail ESTALE")))
        for name in ((), (job,), (job[:-3],), (run_dir,)):
            self.assertRegex(self.says("status", *name), r"(?m)^\s*w1 ")
        self.assertIn("w0", self.says("explain", job, "w0"))
        [row] = json.loads(self.says("jobs", "--json"))
        self.assertEqual((row["job"], row["running"], row["workers"]), (job, True, 2))
        self.assertIn("w1 is asked to leave", self.says("evict", job, "w1", "--no-wait"))
        for command in (("logs", job), ("attach", job), ("data", "audit", run_dir)):
            refused = self.antdt(*command)
            self.assertNotEqual(refused.returncode, 0, command)
            self.assertIn(f"whether {run_dir} holds a run cannot be seen: Stale file handle", refused.stderr)
            self.assertIn(f"antdt status {run_dir} asks its daemon", refused.stderr)
        stop = subprocess.Popen([ANTDT, "stop", run_dir], env=self.env, cwd=self.dir,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (stop.poll() is None and stop.kill(), stop.communicate()))
        await_true(lambda: (run_dir / "summary.json").exists(), 60, "it has stopped")
        self.write("control", "")
        out, err = stop.communicate(timeout=60)
        self.assertEqual(stop.returncode, 0, out + err)
        self.assertIn("stopped", out)
        self.env = usual

    def test_status_that_watches_leaves_one_thread_behind(self):
        job, run_dir = self.begin("watched")
        watch = subprocess.Popen([ANTDT, "status", job, "--watch", "--json"], env=self.env, cwd=self.dir,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (watch.poll() is None and watch.kill(), watch.communicate()))
        threads = pathlib.Path(f"/proc/{watch.pid}/task")
        self.assertTrue(watch.stdout.readline(), "the first round")
        before = len(list(threads.iterdir()))
        answer = self.stand(run_dir)
        for _ in range(6):
            self.assertEqual(json.loads(watch.stdout.readline())["job"], job)
        self.assertLessEqual(len(list(threads.iterdir())), before + 1)
        answer()
        self.says("stop", job)
        self.assertIn("stopped", watch.communicate(timeout=60)[0])


if __name__ == "__main__":
    unittest.main()
