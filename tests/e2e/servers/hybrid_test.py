"""Jobs whose workers sum dense gradients in a collective, with the embedding rows on servers
(sync = "hybrid")."""

import json
import random
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import slices
import tally
from harness import BUILT_IN, needs_trainer
from server_jobs import BUDGETS, KILLS, SEED, ServersTest, job as server_job

ROWS = 12000
RECORDS = 12000


class HybridTest(ServersTest):
    def assert_both_parts(self, run_dir, summary, records, epochs):
        """Every record is counted once an epoch in the dense replica, in its three rows, and by the
        ledger, all of one checkpoint."""
        self.assert_exact_on_servers(summary, run_dir, records, epochs)
        dense = tally.counts(run_dir)
        self.assertEqual({r: n for r, n in enumerate(dense) if n != epochs}, {},
                         "records that the dense replica has not counted once an epoch")

    def tally_job(self, workers=2, servers=1, delay="", extra="", epochs=2):
        return self.write("job.toml", server_job(workers=workers, servers=servers, records=RECORDS,
                                                 epochs=epochs, delay=delay, extra=extra,
                                                 sync="hybrid"))


class HybridTally(HybridTest):
    def test_each_record_is_once_in_the_replica_and_in_its_rows(self):
        run = self.run_job(self.tally_job(workers=3, servers=2))
        self.assert_done(run)
        self.assert_both_parts(run.dir, run.summary, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_lost_worker_leaves_neither_part_ahead(self):
        process, run_dir = self.start_job(self.tally_job(workers=3, servers=2, delay="20ms",
                                                         extra=BUDGETS))
        self.await_training(run_dir, samples=1500)
        self.kill_one_of(BUILT_IN, random.Random(1))
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], 1, "nobody went back")
        self.assert_both_parts(run_dir, summary, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_lost_server_takes_both_parts_back_to_one_step(self):
        process, run_dir = self.start_job(self.tally_job(workers=2, servers=2, delay="20ms",
                                                         extra=BUDGETS))
        self.await_status(run_dir, lambda s: s["samples_done"] >= 1500 and
                          any((run_dir / "checkpoints").glob("s*")), 60, "a checkpoint")
        self.kill_one_of("antdt-server", random.Random(1))
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], 2)
        self.assert_both_parts(run_dir, summary, RECORDS, 2)
        self.assert_nothing_left()

    def test_a_lost_job_daemon_stops_no_step(self):
        process, run_dir = self.start_job(self.tally_job(workers=2, servers=1, delay="20ms",
                                                         extra=BUDGETS))
        self.await_training(run_dir, samples=1500)
        self.kill_one_of("antdt-jobd", random.Random(1))
        summary = self.finish(process, run_dir)
        self.assertEqual((summary["lineages"], summary["generations"]), (1, 1))
        self.assert_both_parts(run_dir, summary, RECORDS, 2)
        self.assert_nothing_left()

    def test_anybody_is_killed_again_and_again(self):
        rng = random.Random(SEED)
        process, run_dir = self.start_job(self.tally_job(workers=3, servers=2, delay="30ms",
                                                         extra=BUDGETS, epochs=3))
        for _ in range(KILLS):
            before = self.await_answer(run_dir)["samples_done"]
            self.await_status(run_dir, lambda s, b=before: s["state"] != "training" or
                              s["samples_done"] >= b + 300, 120, "training goes on")
            if process.poll() is not None:
                break
            self.kill_one_of(rng.choice([BUILT_IN, "antdt-server", "antdt-jobd"]), rng)
        summary = self.finish(process, run_dir)
        with self.subTest(seed=SEED):
            self.assert_both_parts(run_dir, summary, RECORDS, 3)
        self.assert_nothing_left()


@needs_trainer
class HybridModel(HybridTest):
    def setUp(self):
        super().setUp()
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)

    def job(self, workers=2, servers=1, sync="hybrid"):
        data = self.dir / "data"
        text = jobs.ctr(data / "train.tsv", data / "eval.tsv", workers=workers, batch=96 * workers)
        text = text.replace('sync = "allreduce"', f'sync = "{sync}"')
        if servers:
            text += f'[roles.server]\ncount = {servers}\n'
        return self.write("job.toml", text)

    def test_deepfm_learns_as_by_the_others(self):
        hybrid = self.run_job(self.job())
        self.assert_done(hybrid)
        self.assert_once(hybrid, 2, ROWS)
        names = {p.name for p in tally.newest(hybrid.dir).iterdir()}
        self.assertIn("state.bin", names)
        self.assertTrue(any(n.endswith(".rows") for n in names))
        # Six seeds: 0.4959 to 0.5016 of all three (means 0.4980, 0.4985 and 0.4985).
        for sync, servers in (("ps-bsp", 1), ("allreduce", 0)):
            other = self.run_job(self.job(sync=sync, servers=servers))
            self.assertAlmostEqual(hybrid.summary["epochs"][-1]["eval"]["log_loss"],
                                   other.summary["epochs"][-1]["eval"]["log_loss"], delta=0.01)
        self.assert_nothing_left()

    def test_it_is_refused_without_servers(self):
        none = self.antdt("run", self.job(servers=0), "--dry-run")
        self.assertEqual(none.returncode, 2, none.stdout)
        self.assertIn("and the job has none: add [roles.server]", none.stderr + none.stdout)


if __name__ == "__main__":
    unittest.main()
