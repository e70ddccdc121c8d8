"""The number of parameter servers changes while the job trains."""

import json
import random
import time
import unittest

import shared  # noqa: F401 (finds what follows)
import server_jobs
from harness import BUILT_IN, await_true, needs_trainer
from server_jobs import BUDGETS, SEED, job

RECORDS = 30000


@needs_trainer
class Resized(server_jobs.ServersTest):
    def start(self, sync, extra="", servers=1):
        """A job that is slowed down until go_on()."""
        text = job(workers=2, servers=servers, records=RECORDS, sync=sync, delay="15ms",
                   extra=extra + BUDGETS)
        process, run_dir = self.start_job(self.write("job.toml", text))
        self.await_training(run_dir, samples=1500)
        self.hold_back(run_dir)
        return process, run_dir

    def finish(self, process, run_dir, timeout=180):
        self.go_on(run_dir)
        return super().finish(process, run_dir, timeout)

    def resize(self, run_dir, count, *options):
        return self.antdt("resize", run_dir, count, "--role", "server", *options)

    def become(self, run_dir, count, before):
        done = self.resize(run_dir, count)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, f"the model is on {count} servers, on {before} before")
        status = self.status(run_dir)
        self.assertEqual(status["servers_count"], count)
        self.assertNotIn("servers_wanted", status)
        here = sorted(s["id"] for s in status["servers"] if s["state"] == "joined")
        self.assertEqual(here[:count], [f"s{i}" for i in range(count)])

    @staticmethod
    def events(run_dir):
        return [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]

    def pauses(self, run_dir):
        """The seconds of each change, from the order of the last checkpoint until the next group trains."""
        found, begun = [], None
        for e in self.events(run_dir):
            if e["kind"] == "last-cut":
                begun = e["time_s"]
            elif e["kind"] == "generation" and begun is not None:
                found.append(e["time_s"] - begun)
                begun = None
        return found

    def test_servers_come_and_go_and_no_record_is_trained_again(self):
        for sync in ("ps-bsp", "ps-ssp", "ps-asp"):
            with self.subTest(sync):
                process, run_dir = self.start(sync)
                self.become(run_dir, 3, before=1)
                self.become(run_dir, 2, before=3)
                summary = self.finish(process, run_dir)
                self.assertEqual((summary["generations"], summary["lineages"]), (3, 3))
                self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
                # Workers also count pushes that were lost on their way, whose records are trained
                # twice.
                trained = sum(w["samples"] for w in summary["workers"])
                self.assertAlmostEqual(trained, 2 * RECORDS, delta=2 * 3 * 96)
                self.assertEqual([s["id"] for s in summary["servers"]], ["s0", "s1"])
                self.assertEqual([w["attempt"] for w in summary["workers"]], [1, 1])
                print(f"{sync}: nothing decided for "
                      + ", ".join(f"{p * 1000:.0f} ms" for p in self.pauses(run_dir)), flush=True)
                self.assert_nothing_left()

    def test_with_replicas_both_processes_come_and_go(self):
        process, run_dir = self.start("ps-bsp", extra="replicas = 2\n")
        self.become(run_dir, 2, before=1)
        self.become(run_dir, 1, before=2)
        summary = self.finish(process, run_dir)
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
        self.assertEqual([s["id"] for s in summary["servers"]], ["s0", "s1"])
        self.assert_nothing_left()

    def test_a_stopped_run_goes_on_with_as_many_servers_as_it_had(self):
        process, run_dir = self.start("ps-asp")
        self.become(run_dir, 2, before=1)
        self.go_on(run_dir)
        self.assertEqual(self.antdt("stop", run_dir).returncode, 0)
        process.communicate(timeout=60)
        done = self.antdt("run", "--resume", run_dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
        self.assertEqual([s["id"] for s in summary["servers"]], ["s0", "s1"])
        self.assert_nothing_left()

    def test_whatever_dies_meanwhile_nothing_is_lost(self):
        print(f"seed {SEED} (ANTDT_KILL_SEED)", flush=True)
        rng = random.Random(SEED)
        process, run_dir = self.start("ps-asp", servers=2)
        for count in (3, 1, 2):
            def asked(count=count):
                if self.status(run_dir) is None:
                    return False
                return self.resize(run_dir, count, "--no-wait").returncode == 0
            await_true(asked, 60, f"{count} servers are asked for")
            time.sleep(rng.uniform(0, 0.3))  # the fault's time, not a wait for anything
            for program in rng.sample(["antdt-server", "antdt-jobd", BUILT_IN], 2):
                self.kill_one_of(program, rng)
            self.await_status(run_dir, lambda s, n=count: s["servers_count"] == n
                              and "servers_wanted" not in s, 90, f"{count} servers")
        summary = self.finish(process, run_dir, timeout=400)
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()

    def test_an_impossible_number_is_refused_and_changes_nothing(self):
        process, run_dir = self.start("ps-bsp")
        for count, why in ((65, "1 to 64 are"), (0, "")):
            done = self.resize(run_dir, count)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)
        self.assertEqual(self.resize(run_dir, 1).returncode, 0, "it has one")
        summary = self.finish(process, run_dir)
        self.assertEqual(summary["generations"], 1)
        self.assert_exact_on_servers(summary, run_dir, RECORDS, 2)


if __name__ == "__main__":
    unittest.main()
