"""antdt drain: two jobs leave one of two hosts, which starts nothing until antdt undrain."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from hosts import Hosts
from harness import await_true, needs_trainer

RECORDS = 200_000  # more than are trained before the test stops the jobs


@needs_trainer
class Drain(Hosts, tally.TallyTest):
    def start(self, hosts, keys, name):
        text = tally.job(workers=2, records=RECORDS, delay="10ms", extra=self.cluster(hosts, keys))
        text = text.replace('command = ["antdt-trainer"]',
                            'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        return self.start_job(self.write(f"{name}.toml", text))

    def hosts_of(self, run_dir):
        """The hosts of the workers that train, with their numbers."""
        status = self.status(run_dir)
        if not status or status["state"] != "training":
            return None
        found = [w["host"] for w in status["workers"] if w["state"] == "joined"]
        return {h: found.count(h) for h in set(found)}

    def drained(self, run_dir):
        status = self.status(run_dir)
        return {h["name"]: h["drained"] for h in status["hosts"] if "drained" in h} if status else None

    def test_jobs_leave_a_drained_host_and_come_back(self):
        keys = self.keys("keys")
        flags = ("--cpus", "4")
        a, b = (self.agent(n, keys, flags=flags) for n in ("hosta", "hostb"))
        runs = [self.start([a, b], keys, name) for name in ("one", "two")]
        for _, run_dir in runs:
            await_true(lambda r=run_dir: self.hosts_of(r) == {"hosta": 1, "hostb": 1}, 60,
                       "a worker on each host")

        done = self.antdt("drain", b, "--reason", "new memory", "--keys", keys)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("new memory", done.stdout)
        for process, run_dir in runs:
            await_true(lambda r=run_dir: self.hosts_of(r) == {"hosta": 2}, 30, "hostb is left")
            self.assertIsNone(process.poll())
            self.assertRegex(self.drained(run_dir)["hostb"], r"^by \S+@hostb: new memory$")
            shown = self.antdt("status", run_dir).stdout
            self.assertRegex(shown, r"hostb \(drained by \S+@hostb: new memory\)")
            self.assertEqual(json.loads(self.antdt("status", run_dir, "--json").stdout)["failures"], [])
        self.assertIn("the host is drained by",
                      self.antdt("jobs", "--agent", b, "--keys", keys).stdout)
        refused = self.run_job(self.write("three.toml", EXEC + self.cluster([b], keys)), timeout=60)
        self.assertEqual(refused.code, 3, refused.explain())
        self.assertIn("new memory", refused.err)

        back = self.antdt("undrain", b, "--keys", keys)
        self.assertEqual((back.returncode, back.stdout), (0, f"{b} takes processes again\n"))
        for _, run_dir in runs:
            await_true(lambda r=run_dir: self.drained(r) == {}, 10, "hostb is not drained")
        once = self.run_job(self.write("four.toml", EXEC + self.cluster([b], keys)), timeout=60)
        self.assert_done(once)
        for process, run_dir in runs:
            stopped = self.antdt("stop", run_dir)
            self.assertEqual(stopped.returncode, 0, stopped.stderr)
            process.communicate(timeout=60)
            summary = json.loads((run_dir / "summary.json").read_text())
            self.assertEqual((summary["samples_repeated"], summary["samples_lost"]), (0, 0))


EXEC = """
schema = 1
[job]
name = "quick"
[roles.worker]
count = 1
protocol = "exec"
command = ["true"]
"""


if __name__ == "__main__":
    unittest.main()
