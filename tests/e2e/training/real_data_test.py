"""Quality on real data, with the accounts."""

import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import EndToEnd, gunzip, needs_trainer, unpack


@needs_trainer
class RealData(EndToEnd):
    def criteo(self):
        """Training and evaluation file: the first 8,000 rows of the sample and the last 2,000."""
        rows = (unpack("criteo_kaggle_10k", self.dir) / "train_10k.tsv").read_text().splitlines(True)
        return (self.write("train.tsv", "".join(rows[:8000])),
                self.write("eval.tsv", "".join(rows[8000:])))

    def test_criteo_reaches_the_quality_of_hashed_logistic_regression(self):
        job = self.write("job.toml", jobs.ctr(*self.criteo(), workers=4, model="lr", epochs=3,
                                              batch=256, lr=0.003))
        run = self.run_job(job)
        self.assert_done(run)
        self.assert_once(run, 3, 8000)
        best = max(e["eval"]["auc"] for e in run.summary["epochs"])
        self.assertGreaterEqual(best, 0.72, run.summary["epochs"])

    def test_xdeepfm_reaches_the_same_quality_in_two_epochs(self):
        run = self.run_job(self.write("job.toml", jobs.ctr(*self.criteo(), model="xdeepfm")))
        self.assert_done(run)
        self.assert_once(run, 2, 8000)
        self.assertGreaterEqual(run.summary["epochs"][1]["eval"]["auc"], 0.72)

    def test_mnist_reaches_97_percent(self):
        folder = unpack("mnist", self.dir)
        for archive in folder.glob("*.gz"):
            gunzip(archive)
        run = self.run_job(self.write("job.toml", jobs.mnist(folder, workers=2, epochs=5)))
        self.assert_done(run)
        self.assert_once(run, 5, 60000)
        self.assertGreaterEqual(max(e["eval"]["accuracy"] for e in run.summary["epochs"]), 0.97)


if __name__ == "__main__":
    unittest.main()
