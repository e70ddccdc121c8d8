"""Jobs whose parameter servers are two processes each: the loss of one costs only the switch to the
other."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import needs_trainer
from server_jobs import BUDGETS, ServersTest, job

REPLICAS = "replicas = 2\n" + BUDGETS


@needs_trainer
class Replicas(ServersTest):
    def start(self, sync, records):
        process, run_dir = self.start_job(self.write(
            "job.toml", job(records=records, delay="10ms", extra=REPLICAS, sync=sync)))
        return process, run_dir, self.await_training(run_dir, samples=1500)

    def end(self, process, run_dir, records, lineages=1):
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], lineages, "how often all went back to a checkpoint")
        self.assertEqual(summary["generations"], lineages)
        self.assert_exact_on_servers(summary, run_dir, records, 2)
        self.assert_nothing_left()
        return summary

    @staticmethod
    def server(status, name):
        return next(s for s in status["servers"] if s["id"] == name)

    def switches(self, run_dir):
        lines = (run_dir / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [e["text"] for e in events if e["kind"] == "server-switched"]

    def test_a_lost_primary_is_replaced_by_its_backup(self):
        for sync in ("ps-bsp", "ps-asp"):
            with self.subTest(sync):
                process, run_dir, before = self.start(sync, 20000)
                self.assertEqual([s["role"] for s in before["servers"]],
                                 ["primary", "primary", "backup", "backup"])
                self.kill(self.server(before, "s0")["pid"])
                summary = self.end(process, run_dir, 20000)
                self.assertEqual(self.server(summary, "s2")["pid"],
                                 self.server(before, "s2")["pid"])
                self.assertEqual(self.server(summary, "s0")["attempt"], 2)
                self.assertIn("its backup s2 is server 0", "".join(self.switches(run_dir)))

    def test_a_returning_process_becomes_the_backup_and_may_be_promoted(self):
        for sync in ("ps-bsp", "ps-ssp", "ps-asp"):
            with self.subTest(sync):
                process, run_dir, before = self.start(sync, 60000)
                self.kill(self.server(before, "s0")["pid"])
                now = self.await_status(
                    run_dir, lambda s: self.server(s, "s0").get("role") == "backup", 60,
                    "a server with a backup again")
                self.assertEqual(self.server(now, "s2")["role"], "primary")
                self.kill(self.server(now, "s2")["pid"])
                summary = self.end(process, run_dir, 60000)
                self.assertEqual(self.server(summary, "s0")["pid"], self.server(now, "s0")["pid"])
                self.assertIn("its backup s0 is server 0", "".join(self.switches(run_dir)))

    def test_a_process_of_a_server_is_moved_when_it_is_evicted(self):
        process, run_dir, before = self.start("ps-asp", 60000)
        moved = self.antdt("evict", run_dir, "s0", "--reason", "a slow machine")
        self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr)
        self.assertIn("s0 has left", moved.stdout)
        now = self.await_status(
            run_dir, lambda s: self.server(s, "s0").get("role") == "backup", 60, "a backup")
        self.assertEqual(self.server(now, "s0")["attempt"], 2)
        self.assertEqual(self.server(now, "s2")["pid"], self.server(before, "s2")["pid"])
        self.end(process, run_dir, 60000)

    def test_both_processes_of_a_server_lost_at_once_take_all_back_to_a_checkpoint(self):
        process, run_dir, before = self.start("ps-bsp", 40000)
        self.kill(self.server(before, "s3")["pid"])
        self.kill(self.server(before, "s1")["pid"])
        self.end(process, run_dir, 40000, lineages=2)


if __name__ == "__main__":
    unittest.main()
