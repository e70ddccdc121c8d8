"""A worker is slow for good, and there are two hosts. It is started again on the other host, at
once if that is allowed, otherwise when an operator approves it."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import needs_trainer
from hosts import Hosts

RECORDS = 60000
EXTRA = """
[control]
mode = "act"
transient_window = "1s"
persistent_window = "4s"
allow = [{allow}]
{cluster}
[[inject]]
workers = ["*"]
delay_per_sample = "500us"
[[inject]]
workers = ["w3"]
slowdown = 6.0
"""


@needs_trainer
class KillRestart(Hosts, tally.TallyTest):
    def start(self, allow):
        keys = self.keys("keys")
        hosts = [self.agent(name, keys) for name in ("hosta", "hostb")]
        extra = EXTRA.format(allow=allow, cluster=self.cluster(hosts, keys))
        job = self.write("job.toml", tally.job(records=RECORDS, epochs=4, batch=64, extra=extra))
        return self.start_job(job)

    def await_moved(self, run_dir, before):
        """w3 trains in its second attempt, on the other host."""
        def moved(status):
            w3 = next(w for w in status["workers"] if w["id"] == "w3")
            return w3["attempt"] == 2 and w3["state"] == "joined" and w3["host"] != before
        return self.await_status(run_dir, moved, 120, "w3 on another host")

    @staticmethod
    def host_of(status, worker):
        return next(w["host"] for w in status["workers"] if w["id"] == worker)

    @staticmethod
    def restarts(status, outcome):
        return [a for a in status["actions"]
                if a["kind"] == "kill-restart" and a["outcome"] == outcome]

    def test_where_it_is_allowed_the_worker_goes_to_the_other_host(self):
        process, run_dir = self.start('"kill-restart"')
        status = self.await_training(run_dir)
        self.await_moved(run_dir, self.host_of(status, "w3"))
        summary = self.finish(process, run_dir, timeout=400)
        done = self.restarts(summary, "applied")
        self.assertEqual([a["target"] for a in done], ["w3"], summary["actions"])
        self.assert_exact(summary, run_dir, RECORDS, 4)

    def test_a_recommended_action_is_executed_when_it_is_approved(self):
        process, run_dir = self.start("")
        status = self.await_training(run_dir)
        before = self.host_of(status, "w3")
        status = self.await_status(run_dir, lambda s: self.restarts(s, "advised"), 120, "an advice")
        advice = self.restarts(status, "advised")[0]
        none = self.antdt("approve", run_dir, 99)
        self.assertNotEqual(none.returncode, 0)
        self.assertIn("no action 99", none.stderr)
        approved = self.antdt("approve", run_dir, advice["number"])
        self.assertEqual(approved.returncode, 0, approved.stderr)
        self.assertIn("kill-restart of w3", approved.stdout)
        self.await_moved(run_dir, before)
        self.antdt("stop", run_dir)
        process.communicate(timeout=120)
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        self.assertTrue([e for e in events if e["kind"] == "operator" and "approve" in e["text"]])


if __name__ == "__main__":
    unittest.main()
