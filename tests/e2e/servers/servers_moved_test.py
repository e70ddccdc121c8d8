"""A parameter server without replicas moves to another host while the job trains, because an
operator orders it or because its host is slow."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import BUILT_IN, needs_trainer
from hosts import Hosts
from server_jobs import BUDGETS, job

RECORDS = 40000
SLOW_HOST = """
[control]
mode = "act"
solution = "nd"
transient_window = "1s"
persistent_window = "4s"
allow = ["kill-restart"]
max_actions_per_hour = 1
# Much longer than the delays of a busy machine.
[[inject]]
workers = ["s0", "s1", "s2", "s3"]
delay = "2ms"
[[inject]]
workers = ["s0"]
host = "{host}"
delay = "15ms"
"""


@needs_trainer
class Moved(server_jobs.ServersTest, Hosts):
    def setUp(self):
        super().setUp()
        keys = self.keys("keys")
        self.hosts = [self.agent(name, keys) for name in ("hosta", "hostb")]
        self.two_hosts = self.cluster(self.hosts, keys)

    def start(self, sync, extra="", delay="10ms", records=RECORDS):
        text = job(workers=2, records=records, sync=sync, delay=delay,
                   extra=BUDGETS + extra + self.two_hosts)
        process, run_dir = self.start_job(self.write("job.toml", text))
        return process, run_dir, self.await_training(run_dir, samples=1500)

    @staticmethod
    def hosts_of(status):
        return {s["id"]: s["host"] for s in status["servers"] if s["state"] == "joined"}

    def end(self, process, run_dir, records=RECORDS):
        summary = self.finish(process, run_dir, timeout=400)
        self.assertEqual((summary["lineages"], summary["generations"]), (1, 1),
                         "nobody went back, and no worker noticed")
        self.assert_exact_on_servers(summary, run_dir, records, 2)
        self.assertEqual(self.pids("antdt-server") + self.pids(BUILT_IN), [])
        return summary

    def evict(self, run_dir, server):
        moved = self.antdt("evict", run_dir, server)
        self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr)
        return moved.stdout

    def test_an_evicted_server_hands_over_to_a_process_on_another_host(self):
        for sync in ("ps-bsp", "ps-asp"):
            with self.subTest(sync):
                process, run_dir, before = self.start(sync)
                self.hold_back(run_dir)
                was = self.hosts_of(before)
                there = ({"hosta", "hostb"} - {was["s0"]}).pop()
                self.assertEqual(self.evict(run_dir, "s0"),
                                 f"s0 has left {was['s0']}; s2 on {there} has taken over\n")
                again = self.evict(run_dir, "s2")
                self.assertEqual(again, f"s2 has left {there}; s0 on {was['s0']} has taken over\n")
                self.go_on(run_dir)
                summary = self.end(process, run_dir)
                self.assertEqual([(s["id"], s["attempt"]) for s in summary["servers"]],
                                 [("s0", 2), ("s1", 1)])

    def test_a_server_that_is_slow_on_its_host_is_moved(self):
        # s0 begins on the first host.
        process, run_dir, before = self.start(
            "ps-asp", SLOW_HOST.format(host="hosta"), delay="20ms", records=40000)
        self.assertEqual(self.hosts_of(before)["s0"], "hosta")
        now = self.await_status(run_dir, lambda s: "s2" in self.hosts_of(s), 60, "s0 as s2")
        self.assertEqual(self.hosts_of(now)["s2"], "hostb")
        summary = self.end(process, run_dir, records=40000)
        done = [a for a in summary["actions"] if a["outcome"] == "applied"]
        self.assertEqual([(a["kind"], a["target"]) for a in done], [("kill-restart", "s0")])
        self.assertIn("s0 on hosta has taken", done[0]["reason"])
        events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
        self.assertTrue([e for e in events if "s0 on hosta is a" in e["text"]], "the verdict")


if __name__ == "__main__":
    unittest.main()
