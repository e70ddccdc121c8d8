"""Records that are pinned to domains: workers of a domain train only its data, lost ones give them back to
it, and a domain without workers waits. On one machine, whose domains are made up by workers' ids."""

import json
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import needs_trainer
from tally import job

RECORDS = 24_000


DOMAINS = """
[[domain]]
name = "east"
workers = ["w0", "w1"]
data = ["0:4000", "19000:24000"]
[[domain]]
name = "west"
workers = ["w2", "w3"]
data = ["4000:19000"]
"""


def pinned(delay="", sync="allreduce"):
    if sync == "allreduce":
        text = job(workers=4, records=RECORDS, delay=delay,
                   extra="[failure]\nbudgets = { signal = 100 }\n" + DOMAINS)
    else:
        text = server_jobs.job(workers=4, records=RECORDS, delay=delay, sync=sync,
                               extra=server_jobs.BUDGETS + DOMAINS)
    return text.replace('format = "index"', 'format = "index"\npin = "domain"')


@needs_trainer
class Pinned(server_jobs.ServersTest):
    def audit(self, run_dir):
        done = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def assert_each_in_its_domain(self, run_dir):
        for epoch in self.audit(run_dir)["epochs"]:
            self.assertEqual(epoch["elsewhere"], 0)
            self.assertEqual(epoch["domains"], [
                {"name": "east", "records": 9_000, "trained": 9_000},
                {"name": "west", "records": 15_000, "trained": 15_000}])

    def pids_of(self, run_dir, *workers):
        return [w["pid"] for w in self.await_answer(run_dir)["workers"]
                if w["id"] in workers and w["pid"]]

    def test_lost_workers_and_a_domain_that_loses_all_of_them(self):
        self.survives("allreduce")

    def test_the_same_with_a_barrier_on_servers(self):
        self.survives("ps-bsp")

    def test_the_same_without_a_barrier(self):
        self.survives("ps-asp")

    def survives(self, sync):
        process, run_dir = self.start_job(self.write("job.toml", pinned("10ms", sync)))
        self.await_training(run_dir, 2_000)
        for pid in self.pids_of(run_dir, "w1"):
            self.kill(pid)
        self.await_training(run_dir, 8_000)
        for pid in self.pids_of(run_dir, "w2", "w3"):
            self.kill(pid)
        self.await_training(run_dir, 26_000)
        for pid in self.pids_of(run_dir, "w0"):
            self.kill(pid, signal.SIGSEGV)
        summary = self.finish(process, run_dir)
        check = self.assert_exact if sync == "allreduce" else self.assert_exact_on_servers
        check(summary, run_dir, RECORDS, 2)
        self.assertGreaterEqual(sum(len(f) > 0 for f in summary["failures"]), 3)
        self.assert_each_in_its_domain(run_dir)

    def test_the_history_says_the_same_as_the_audit(self):
        run = self.run_job(self.write("job.toml", pinned()))
        self.assert_done(run)
        self.assert_each_in_its_domain(run.dir)
        # Each step has the whole global batch, although one domain has more records than the other.
        self.assertLess(run.summary["steps"], 1.03 * 2 * RECORDS / 64)
        for step in range(1, 30):
            done = self.antdt("data", "which", run.dir, "--step", step, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            for member in json.loads(done.stdout)["workers"]:
                east = member["worker"] in ("w0", "w1")
                for record in member["records"]:
                    self.assertEqual(east, record < 4_000 or record >= 19_000,
                                     f"step {step}: {member['worker']} trained {record}")

    def test_a_run_is_stopped_and_resumed_and_keeps_its_pins(self):
        process, run_dir = self.start_job(self.write("job.toml", pinned("20ms")))
        self.await_training(run_dir, 4_000)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=120)
        moved = self.antdt("run", "--resume", run_dir, "--set",
                           'domain=[{name="east",workers=["w0","w1"],data=["0:19000"]},'
                           '{name="west",workers=["w2","w3"],data=["19000:24000"]}]')
        self.assertEqual(moved.returncode, 2, moved.stdout + moved.stderr)
        self.assertIn("records are pinned to domains as they were when it began", moved.stderr)
        resumed = self.antdt("run", "--resume", run_dir, "--set", "failure.hang_after=100s")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assert_exact(json.loads((run_dir / "summary.json").read_text()), run_dir, RECORDS, 2)
        self.assert_each_in_its_domain(run_dir)

    def test_errors_come_before_anything_starts(self):
        good = pinned()
        for change, error in (
                (('"19000:24000"]', '"19001:24000"]'),
                 "records 19000:19001 are in no domain"),
                (('"4000:19000"', '"3999:19000"'),
                 "records 3999:4000 are in domain 'east' and in 'west'"),
                (('"4000:19000"', '"4000:25000"'), "'4000:25000' is no range of records"),
                (('pin = "domain"', ""), "write data.pin = \"domain\" as well, or remove it"),
                (('workers = ["w2", "w3"]', 'workers = ["w3"]'),
                 "w2 on"),
                (('workers = ["w2", "w3"]', 'hosts = ["elsewhere"]'), "is in no domain")):
            text = good.replace(*change)
            self.assertNotEqual(text, good)
            done = self.antdt("run", self.write("bad.toml", text), "--run-dir", self.dir / "none")
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(error, done.stderr)
            self.assertFalse((self.dir / "none").exists())


if __name__ == "__main__":
    unittest.main()
