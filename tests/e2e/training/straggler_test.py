"""One worker of four has a third of its speed: the batches move, and the loss stays. A worker's
speed is set by a delay for each sample, which is much longer than the computation, so that the
result for 4 workers is valid on 2 cores. bench/slow_worker.py measures the gain in samples/s."""

import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, needs_trainer

ROWS = 24000


@needs_trainer
class Straggler(EndToEnd):
    def test_batches_follow_speed_and_the_loss_does_not_move(self):
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)
        runs = {}
        for solution in ("none", "nd"):
            job = self.write(f"{solution}.toml",
                             jobs.ctr(self.dir / "data" / "train.tsv",
                                      self.dir / "data" / "eval.tsv", workers=4, epochs=2,
                                      batch=256, extra=jobs.SLOW.format(solution=solution)))
            runs[solution] = self.run_job(job)
            self.assert_done(runs[solution])
            self.assert_once(runs[solution], 2, ROWS)
        none, nd = runs["none"].summary, runs["nd"].summary
        self.assertEqual(none["actions"], [])
        moved = [a for a in nd["actions"] if a["kind"] == "adjust-batch"]
        self.assertTrue(moved, nd["actions"])
        self.assertEqual(moved[0]["target"], "w3", nd["actions"])
        samples = {w["id"]: w["samples"] for w in nd["workers"]}
        self.assertLess(samples["w3"], 0.6 * samples["w0"], nd["actions"])
        for a, b in zip(none["epochs"], nd["epochs"]):
            self.assertAlmostEqual(a["train_loss"], b["train_loss"], delta=0.01)
            self.assertAlmostEqual(a["eval"]["auc"], b["eval"]["auc"], delta=0.01)


if __name__ == "__main__":
    unittest.main()
