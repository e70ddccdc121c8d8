"""The main job: real processes, all-reduce, one machine without a daemon."""

import json
import os
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, await_true, needs_trainer

ROWS = 20000


@needs_trainer
class MainJob(EndToEnd):
    def setUp(self):
        super().setUp()
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.train = self.dir / "data" / "train.tsv"
        self.eval = self.dir / "data" / "eval.tsv"

    def job(self, **options):
        return self.write("job.toml", jobs.ctr(self.train, self.eval, **options))

    def test_trains_evaluates_and_accounts_for_every_record(self):
        run = self.run_job(self.job(workers=2))
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        s = run.summary
        self.assertEqual(len(s["epochs"]), 2)
        self.assertGreater(s["epochs"][1]["eval"]["auc"], 0.6)
        self.assertLess(s["epochs"][1]["train_loss"], s["epochs"][0]["train_loss"])
        self.assertEqual(s["exit"]["code"], 0)
        self.assertEqual(len(s["checkpoints"]), 1, "the trained model is kept")
        self.assertIn(f"s{s['steps']:010d}", s["checkpoints"][0])
        self.assertEqual([w["id"] for w in s["workers"]], ["w0", "w1"])
        self.assertEqual(sum(w["samples"] for w in s["workers"]), 2 * ROWS)
        self.assertEqual(s["collective"], "shm (2 members of 1 host)")
        self.assertIn("collective: shm (2 members of 1 host)\n", run.out)
        sums = s["workers"][0]["embedding_steps"]
        # The step that ends an epoch has no records, and may sum nothing.
        self.assertIn(s["steps"] - sum(sums.values()), range(3), "other steps summed it once each")
        self.assertEqual(s["workers"][1]["embedding_steps"], sums, "members decide alike")
        self.assertIn(f"embedding gradients: w0 summed the rows of the batch in {sums['rows']} "
                      f"steps, the whole table in {sums['whole_table']}\n", run.out)
        for worker in s["workers"]:
            spent = sum(worker["lost_time"].values())
            self.assertAlmostEqual(spent, worker["wall_seconds"],
                                   delta=0.02 * worker["wall_seconds"], msg=worker)
            self.assertLess(worker["lost_time"]["other"], 0.5, worker)
        traffic = s["traffic"]
        self.assertEqual(len(traffic["hosts"]), 1, "both workers are on one host")
        link = traffic["hosts"][0]
        self.assertEqual(link["from"], link["to"])
        self.assertEqual(link["sent_bytes"], link["received_bytes"], "what was sent has arrived")
        self.assertEqual(sum(traffic[kind + "_bytes"] for kind in
                             ("gradients", "parameters", "slots", "healing", "other")),
                         link["sent_bytes"])
        self.assertGreater(traffic["gradients_bytes"], traffic["slots_bytes"])
        # Each worker sends its slot to the other one in each step.
        self.assertGreaterEqual(traffic["slots_bytes"], 2 * s["steps"])
        self.assert_nothing_left()

    def test_the_same_result_with_one_two_and_four_workers(self):
        auc = {}
        for workers in (1, 2, 4):
            run = self.run_job(self.job(workers=workers))
            self.assert_done(run)
            self.assert_once(run, 2, ROWS)
            auc[workers] = run.summary["epochs"][1]["eval"]["auc"]
        self.assertLess(max(auc.values()) - min(auc.values()), 0.01, auc)

    def test_checkpoints_are_whole_and_named(self):
        run = self.run_job(self.job(workers=2, extra='[checkpoint]\nevery = "300ms"\nkeep = 2'))
        self.assert_done(run)
        found = sorted(p for p in (run.dir / "checkpoints").iterdir() if p.name.startswith("s"))
        self.assertTrue(1 <= len(found) <= 2, found)
        for checkpoint in found:
            manifest = json.loads((checkpoint / "MANIFEST.json").read_text())
            for file in manifest["files"]:
                self.assertEqual((checkpoint / file["name"]).stat().st_size, file["bytes"])
            self.assertTrue((checkpoint / "ledger.json").exists())

    def test_stop_writes_a_checkpoint_and_exits_75(self):
        process, run_dir = self.start_job(self.job(workers=2, epochs=500))
        await_true(lambda: '"kind":"phase"' in self.events(run_dir), 60, "training begins")
        stopped = self.antdt("stop", run_dir)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["state"], "stopped")
        self.assertTrue(any((run_dir / "checkpoints").glob("s*")), "a checkpoint was written")
        audit = self.antdt("data", "audit", run_dir)
        self.assertEqual(audit.returncode, 5, "not finished: " + audit.stdout)
        self.assert_nothing_left()

    def test_a_killed_worker_that_may_not_be_started_again_is_named_as_the_first_cause(self):
        process, run_dir = self.start_job(self.job(workers=3, epochs=500), "--set",
                                          "roles.worker.restart=never")
        await_true(lambda: '"kind":"phase"' in self.events(run_dir), 60, "training begins")
        status = json.loads(self.antdt("status", run_dir, "--json").stdout)
        os.kill(status["workers"][1]["pid"], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, out + err)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertIn("w1", summary["exit"]["first_cause"])
        self.assertIn("SIGKILL", summary["exit"]["first_cause"])
        self.assertIn("w1", (out + err).strip().splitlines()[-1])
        self.assert_nothing_left()

    @staticmethod
    def events(run_dir):
        path = run_dir / "events.jsonl"
        return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    unittest.main()
