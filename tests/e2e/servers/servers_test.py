"""Jobs with parameter servers: the model is on the servers, and is exact whichever workers and
servers die."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
from harness import needs_trainer
from server_jobs import BUDGETS, ServersTest, job, newest_names


@needs_trainer
class Servers(ServersTest):
    def test_a_record_is_in_the_model_once_an_epoch(self):
        for sync in ("ps-bsp", "ps-ssp", "ps-asp"):
            with self.subTest(sync):
                self.check_plain_run(sync)

    def check_plain_run(self, sync):
        run = self.run_job(self.write(f"{sync}.toml", job(model="tally", records=5000, sync=sync)))
        self.assert_done(run)
        self.assert_exact_on_servers(run.summary, run.dir, 5000, 2, each=1)
        self.assertEqual([s["id"] for s in run.summary["servers"]], ["s0", "s1"])
        self.assertEqual(sum(s["rows"] for s in run.summary["servers"]), 5000)
        self.assertGreater(run.summary["pushes"]["applied"], 0)
        self.assertEqual(len(run.summary["workers"]), 3)
        self.assert_nothing_left()

    def test_a_lost_worker_is_not_noticed_by_the_others(self):
        process, run_dir = self.start_job(self.write("job.toml", job(delay="10ms", extra=BUDGETS)))
        before = self.await_training(run_dir, samples=1500)
        victim = next(w for w in before["workers"] if w["id"] == "w1")
        self.kill(victim["pid"])
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], 1)
        self.assertEqual(summary["generations"], 1)
        after = {w["id"]: w for w in summary["workers"]}
        for w in before["workers"]:
            if w["id"] != "w1":
                self.assertEqual(after[w["id"]]["pid"], w["pid"])
        self.assertEqual(after["w1"]["attempt"], 2)
        self.assert_exact_on_servers(summary, run_dir, 20000, 2)
        self.assert_nothing_left()

    def test_a_lost_server_takes_model_and_ledger_back_to_one_checkpoint(self):
        process, run_dir = self.start_job(self.write("job.toml", job(delay="10ms", extra=BUDGETS)))
        self.await_status(run_dir, lambda s: any(newest_names(run_dir)), 60, "a checkpoint")
        status = self.await_training(run_dir, samples=6000)
        self.kill(next(s for s in status["servers"] if s["id"] == "s1")["pid"])
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], 2)
        self.assert_exact_on_servers(summary, run_dir, 20000, 2)
        self.assert_nothing_left()

    def test_a_stopped_run_goes_on_from_its_servers_checkpoint(self):
        process, run_dir = self.start_job(self.write("job.toml", job(delay="10ms", extra=BUDGETS)))
        self.await_training(run_dir, samples=3000)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        done = self.antdt("run", "--resume", run_dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact_on_servers(summary, run_dir, 20000, 2)
        self.assert_nothing_left()

    def test_a_run_that_was_killed_while_its_servers_served_goes_on_from_their_checkpoint(self):
        process, run_dir = self.start_job(self.write("job.toml", job(delay="10ms", extra=BUDGETS)))
        self.await_status(run_dir, lambda s: any(newest_names(run_dir)), 60, "a checkpoint")
        self.await_training(run_dir, samples=3000)
        self.kill_all()
        process.communicate(timeout=30)

        def daemons():
            lines = (run_dir / "events.jsonl").read_text().splitlines()
            return sum(json.loads(line)["kind"] == "start" for line in lines)

        before = daemons()
        done = self.antdt("run", "--resume", run_dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(daemons(), before + 1, "the job daemon did not die of it")
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact_on_servers(summary, run_dir, 20000, 2)
        self.assert_nothing_left()

    def test_random_kills_lose_nothing_where_all_wait_for_each_step(self):
        self.check_kills("ps-bsp")

    def test_random_kills_lose_nothing_with_bounded_staleness(self):
        self.check_kills("ps-ssp")

    def test_random_kills_lose_nothing_without_a_barrier(self):
        self.check_kills("ps-asp")

    def check_kills(self, sync):
        run_dir, summary = self.kill_at_random(sync, self.write(
            "job.toml", job(records=60000, epochs=2, delay="15ms", extra=BUDGETS, sync=sync)), 120000)
        self.assert_exact_on_servers(summary, run_dir, 60000, 2)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
