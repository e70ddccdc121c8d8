"""Servers without a barrier that promise less than exactly once. When a server is killed, the other
servers go on with their state, and the accounts say what that means for the model."""

import json
import os
import random
import unittest

import shared  # noqa: F401 (finds what follows)
import slices
import tally
from harness import BUILT_IN, needs_trainer
from server_jobs import BUDGETS, ServersTest, job, newest_names

RECORDS = 20000
SEED = int(os.environ.get("ANTDT_KILL_SEED", "0")) or random.randrange(1, 1 << 30)


def promising(delivery, sync, records=RECORDS):
    text = job(records=records, epochs=1, delay="15ms", extra=BUDGETS, sync=sync)
    return text.replace('format = "index"', f'format = "index"\ndelivery = "{delivery}"')


@needs_trainer
class ServersDelivery(ServersTest):
    def test_at_least_once_loses_nothing_and_counts_repeated_records(self):
        for sync in ("ps-asp", "ps-ssp"):
            with self.subTest(sync):
                self.check_one_kill("at-least-once", sync)

    def test_at_most_once_repeats_nothing_and_counts_lost_records(self):
        for sync in ("ps-asp", "ps-ssp"):
            with self.subTest(sync):
                self.check_one_kill("at-most-once", sync)

    def check_one_kill(self, delivery, sync):
        process, run_dir = self.start_job(
            self.write(f"{delivery}-{sync}.toml", promising(delivery, sync)))
        self.await_status(run_dir, lambda s: any(newest_names(run_dir)), 60, "a checkpoint")
        before = self.await_training(run_dir, samples=6000)
        pids = {s["id"]: s["pid"] for s in before["servers"]}
        self.kill(pids["s1"])
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["lineages"], 2)
        after = {s["id"]: s for s in summary["servers"]}
        self.assertEqual((after["s0"]["pid"], after["s0"]["attempt"]), (pids["s0"], 1))
        self.assertEqual(after["s1"]["attempt"], 2)
        self.assert_promise(delivery, summary, run_dir)
        self.assert_nothing_left()

    def test_whichever_server_is_killed_whenever_the_promise_is_kept(self):
        for delivery in ("at-least-once", "at-most-once"):
            with self.subTest(delivery):
                self.check_kills(delivery)

    def check_kills(self, delivery, kills=4):
        print(f"{delivery}: seed {SEED} (ANTDT_KILL_SEED)", flush=True)
        rng = random.Random(SEED)
        process, run_dir = self.start_job(
            self.write(f"{delivery}.toml", promising(delivery, "ps-asp", 2 * RECORDS)))
        for _ in self.moments(process, run_dir, rng, kills, 2 * RECORDS):
            self.kill_one_of(rng.choice(
                ["antdt-server", "antdt-server", BUILT_IN, "antdt-jobd"]), rng)
        summary = self.finish(process, run_dir, timeout=400)
        self.assert_promise(delivery, summary, run_dir, 2 * RECORDS)
        self.assert_nothing_left()

    def assert_promise(self, delivery, summary, run_dir, records=RECORDS):
        """In one epoch, the counts of records in their three rows agree with the accounts."""
        done = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        audit = json.loads(done.stdout)
        self.assertEqual(audit["delivery"], delivery)
        (epoch,) = audit["epochs"]
        self.assertEqual(epoch["once"] + epoch["repeated"] + epoch["lost"], records)
        self.assertEqual(epoch["remaining"], 0)
        self.assertEqual(summary["delivery"], delivery)
        self.assertEqual(summary["samples_repeated"], epoch["repeated"])
        self.assertEqual(summary["samples_lost"], epoch["lost"])
        times = self.times_of_records(run_dir, records)
        too_often = sum(max(rows) > 1 for rows in times)
        too_seldom = sum(min(rows) < 1 for rows in times)
        print(f"{delivery}: {summary['lineages']} lineages, {epoch['repeated']} repeated and "
              f"{epoch['lost']} lost by the accounts, {too_often} and {too_seldom} in the model",
              flush=True)
        if delivery == "at-least-once":
            self.assertEqual((too_seldom, epoch["lost"]), (0, 0))
            self.assertLessEqual(too_often, epoch["repeated"])
        else:
            self.assertEqual((too_often, epoch["repeated"]), (0, 0))
            self.assertLessEqual(too_seldom, epoch["lost"])
        exactly_once = sum(min(rows) == max(rows) == 1 for rows in times)
        self.assertGreaterEqual(exactly_once, epoch["once"])

    def times_of_records(self, run_dir, records):
        rows = slices.read_tables(tally.newest(run_dir))["tally"]

        def times(key):  # a row that was never trained does not exist
            return rows[key][0][0] if key in rows else 0
        return [[times(3 * record + i) for i in range(3)] for record in range(records)]


if __name__ == "__main__":
    unittest.main()
