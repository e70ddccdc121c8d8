"""A host is lost in a cluster without any room: a worker gives its place to the parameter server that
was there, and the job ends with fewer workers."""

import json
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import needs_trainer
from hosts import Hosts
from server_jobs import job

RECORDS = 8_000
FULL = """resources = { cpus = 1 }
[failure]
host_lost_after = "3s"
budgets = { host = 10, signal = 10, collective = 10 }
[checkpoint]
every = "1s"
"""


@needs_trainer
class ServersOfAFullCluster(server_jobs.ServersTest, Hosts):
    def test_a_worker_gives_its_place_to_a_server_whose_host_is_lost(self):
        for sync in ("ps-bsp", "hybrid"):
            with self.subTest(sync):
                self.check(sync)

    def check(self, sync):
        keys = self.keys(f"keys-{sync}")
        hosts = [self.agent(f"host{name}-{sync}", keys, flags=("--cpus", cpus))
                 for name, cpus in (("a", "3"), ("b", "2"))]
        text = job(workers=3, records=RECORDS, sync=sync, delay="40ms", extra=FULL + self.cluster(hosts, keys))
        text = text.replace('command = ["antdt-trainer"]', 'command = ["antdt-trainer"]\nresources = { cpus = 1 }')
        process, run_dir = self.start_job(self.write("job.toml", text))
        status = self.await_status(run_dir, lambda s: s["samples_done"] >= 1500 and
                                   any((run_dir / "checkpoints").glob("s*")), 60, "a checkpoint")
        lost = f"hostb-{sync}"
        there = {p["id"]: p["pid"] for role in ("workers", "servers") for p in status[role] if p["host"] == lost}
        self.assertEqual(len(there), 2, f"a worker and a server: {status}")
        self.kill(self.agent_pids[lost], signal.SIGKILL)
        for pid in there.values():
            self.kill(pid, signal.SIGKILL)
        summary = self.finish(process, run_dir)
        self.assertEqual({s["host"] for s in summary["servers"]}, {f"hosta-{sync}"})
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
        events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
        given = [e["text"] for e in events if e["kind"] == "gives-place"]
        self.assertEqual(len(given), 1, given)
        self.assertRegex(given[0], r"^s\d has lost its host, and no other host has room for it: w\d on hosta-")


if __name__ == "__main__":
    unittest.main()
