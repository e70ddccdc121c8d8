"""Operators change a job while it trains on real data. Each record counts once according to the
accounts, and the loss continues as in an undisturbed run."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import needs_trainer, unpack

ROWS = 8000
EPOCHS = 4
# This delay dominates the time of a batch: an epoch of 32 steps takes some 5 s.
SLOW = '[[inject]]\nworkers = ["*"]\ndelay = "150ms"\n[checkpoint]\nevery = "1s"\n'
# The changes put other records into a step, and the loss of a resumed epoch covers only its rest:
# 0.003 here. A model that lost an epoch differs by 0.02 and more.
LOSS_NOISE = 0.01
AUC_NOISE = 0.005


@needs_trainer
class OperatorsOnRealData(tally.TallyTest):
    undisturbed = None  # the epochs of such a run, for all tests

    def setUp(self):
        super().setUp()
        rows = (unpack("criteo_kaggle_10k", self.dir) / "train_10k.tsv").read_text().splitlines(True)
        self.train = self.write("train.tsv", "".join(rows[:ROWS]))
        self.evaluation = self.write("eval.tsv", "".join(rows[ROWS:]))
        if OperatorsOnRealData.undisturbed is None:
            run = self.run_job(self.job())
            self.assert_done(run)
            self.assert_once(run, EPOCHS, ROWS)
            OperatorsOnRealData.undisturbed = run.summary["epochs"]
            print("undisturbed:", self.curve(run.summary["epochs"]), flush=True)

    def job(self, extra=""):
        return self.write("job.toml", jobs.ctr(self.train, self.evaluation, workers=4, model="lr",
                                               epochs=EPOCHS, batch=256, lr=0.003, extra=extra))

    def begin(self):
        """A job of four workers in its second epoch."""
        process, run_dir = self.start_job(self.job(SLOW))
        self.await_training(run_dir, samples=ROWS + 500)
        return process, run_dir

    def ask(self, *args):
        done = self.antdt(*args)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def members(self, run_dir):
        return {w["id"]: w["pid"] for w in self.status(run_dir)["workers"] if w["rank"] is not None}

    def await_members(self, run_dir, count):
        self.await_status(run_dir, lambda s: sum(w["rank"] is not None for w in s["workers"]) == count,
                          60, f"{count} workers train")

    def await_more(self, run_dir, records):
        """Waits until the present workers have trained some more."""
        before = self.status(run_dir)["samples_done"]
        self.await_training(run_dir, samples=before + records)

    @staticmethod
    def curve(epochs):
        return [(round(e["train_loss"], 4), round(e["eval"]["auc"], 4)) for e in epochs]

    def assert_as_undisturbed(self, summary, run_dir):
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        accounts = json.loads(audit.stdout)["epochs"]
        self.assertEqual([(e["once"], e["repeated"], e["lost"]) for e in accounts],
                         [(ROWS, 0, 0)] * EPOCHS)
        self.assertEqual(summary["failures"], [])
        found, expected = self.curve(summary["epochs"]), self.curve(self.undisturbed)
        print(f"{self._testMethodName}: {found}", flush=True)
        for (loss, auc), (usual_loss, usual_auc) in zip(found, expected, strict=True):
            self.assertAlmostEqual(loss, usual_loss, delta=LOSS_NOISE, msg=(found, expected))
            self.assertAlmostEqual(auc, usual_auc, delta=AUC_NOISE, msg=(found, expected))
        losses = [loss for loss, _ in found]
        self.assertEqual(losses, sorted(losses, reverse=True), "the loss falls with every epoch")
        self.assert_nothing_left()

    def test_a_worker_is_evicted(self):
        process, run_dir = self.begin()
        before = self.members(run_dir)
        self.assertIn("w1 has left", self.ask("evict", run_dir, "w1", "--reason", "a drill"))
        self.await_more(run_dir, 500)
        self.assertEqual(self.members(run_dir), {i: p for i, p in before.items() if i != "w1"})
        self.assert_as_undisturbed(self.finish(process, run_dir), run_dir)

    def test_a_job_of_four_goes_on_with_two_and_then_six(self):
        process, run_dir = self.begin()
        for count in (2, 6):
            self.ask("resize", run_dir, count)
            self.await_members(run_dir, count)
            self.await_more(run_dir, 500)
        self.assert_as_undisturbed(self.finish(process, run_dir), run_dir)

    def test_a_stopped_job_is_resumed(self):
        process, run_dir = self.begin()
        trained = self.status(run_dir)["samples_done"]
        self.ask("stop", run_dir, "--reason", "a drill")
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["lineages"], 2)
        restored, = [e for e in self.events(run_dir) if e["kind"] == "restored"]
        step = int(restored["text"].rsplit("(step ", 1)[1].rstrip(")"))
        self.assertGreaterEqual(step * 256, trained, "from the checkpoint of the stop")
        self.assert_as_undisturbed(summary, run_dir)

    def events(self, run_dir):
        return [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    unittest.main()
