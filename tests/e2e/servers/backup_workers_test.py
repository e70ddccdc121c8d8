"""Backup workers: steps do not wait for the slowest push, whose records other workers train."""

import json
import random
import unittest

import shared  # noqa: F401 (finds what follows)
import slices
import tally
from harness import BUILT_IN, needs_trainer
from server_jobs import BUDGETS, SEED, ServersTest, job

RECORDS = 12000
SLOW = '[[inject]]\nworkers = ["w2"]\nslowdown = 4.0\n'


def with_backup(extra="", records=RECORDS, delivery="exactly-once"):
    text = job(model="tally", records=records, epochs=1, delay="10ms", extra=extra)
    text = text.replace('sync = "ps-bsp"', 'sync = "ps-bsp"\nbackup_workers = 1')
    text = text.replace('format = "index"', f'format = "index"\ndelivery = "{delivery}"')
    return text + '[control]\nsolution = "none"\n' + SLOW


@needs_trainer
class BackupWorkers(ServersTest):
    @staticmethod
    def trained(summary):
        return {w["id"]: w["samples"] for w in summary["workers"]}

    def test_records_of_a_late_push_are_trained_by_another_worker(self):
        run = self.run_job(self.write("job.toml", with_backup()))
        self.assert_done(run)
        self.assertGreater(run.summary["pushes"]["late"], 5)
        self.assert_exact_on_servers(run.summary, run.dir, RECORDS, 1, each=1)
        trained = self.trained(run.summary)
        # It is nearly always late, so only few of its pushes are in the model.
        self.assertLess(trained["w2"], 0.1 * RECORDS)
        self.assertEqual(sum(trained.values()), RECORDS)
        self.assert_nothing_left()

    def test_at_most_once_drops_and_counts_late_pushes(self):
        run = self.run_job(self.write("job.toml", with_backup(delivery="at-most-once")))
        self.assert_done(run)
        self.assertGreater(run.summary["pushes"]["late"], 5)
        self.assert_lost_are_missing(run.summary, run.dir, RECORDS)
        self.assert_nothing_left()

    def assert_lost_are_missing(self, summary, run_dir, records):
        lost = summary["samples_lost"]
        self.assertGreater(lost, 0)
        self.assertEqual(summary["samples_repeated"], 0)
        rows = slices.read_tables(tally.newest(run_dir))["tally"]
        self.assertEqual({values[0] for values, _ in rows.values()} - {0, 1}, set())
        self.assertEqual(sum(values[0] for values, _ in rows.values()) + lost, records)
        audit = json.loads(self.antdt("data", "audit", run_dir, "--json").stdout)
        self.assertEqual([(e["once"], e["repeated"], e["lost"]) for e in audit["epochs"]],
                         [(records - lost, 0, lost)])

    def test_whatever_dies_meanwhile_every_record_is_in_the_model_once(self):
        summary, run_dir = self.run_with_kills("exactly-once")
        self.assert_exact_on_servers(summary, run_dir, 3 * RECORDS, 1, each=1)

    def test_whatever_dies_meanwhile_at_most_once_counts_the_lost_records(self):
        summary, run_dir = self.run_with_kills("at-most-once")
        self.assert_lost_are_missing(summary, run_dir, 3 * RECORDS)

    def run_with_kills(self, delivery):
        print(f"seed {SEED} (ANTDT_KILL_SEED)", flush=True)
        rng = random.Random(SEED)
        process, run_dir = self.start_job(self.write(
            "job.toml", with_backup(extra=BUDGETS, records=3 * RECORDS, delivery=delivery)))
        for _ in self.moments(process, run_dir, rng, 4, 3 * RECORDS):
            for program in rng.sample([BUILT_IN, "antdt-server", "antdt-jobd"], 2):
                self.kill_one_of(program, rng)
        summary = self.finish(process, run_dir, timeout=300)
        self.assertGreater(summary["pushes"]["late"], 0)
        self.assert_nothing_left()
        return summary, run_dir


if __name__ == "__main__":
    unittest.main(verbosity=2)
