"""Workers that average their parameters in groups (trainer.sync = "ds-sync"): each record is in the
merged model once, whoever leaves, comes, is slow, or goes on from a checkpoint."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import gunzip, needs_trainer, unpack


@needs_trainer
class DsSync(tally.ReplicasTest):
    def job(self, workers=6, delay="10ms", extra="", **kinds):
        return self.job_of("ds-sync", workers, delay, extra, **kinds)

    def test_every_record_is_in_the_merged_model_once_an_epoch(self):
        # One worker, one group of all (2, 3), full grids (4, 9), and others (5).
        for workers in (1, 2, 3, 4, 5, 9):
            with self.subTest(workers=workers):
                run = self.run_job(self.job(workers, "", records=2000, batch=90))
                self.assert_done(run)
                self.assert_exact(run.summary, run.dir, 2000, self.EPOCHS)
                if workers > 1:
                    traffic = run.summary["traffic"]
                    self.assertGreater(traffic["parameters_bytes"], 0)
                    self.assertEqual(traffic["gradients_bytes"], 0, "each keeps its own")

    def test_workers_leave_and_come(self):
        process, run_dir = self.begin(delay="80ms")  # it outlasts what is asked of it
        self.evict_and_resize(process, run_dir, (3, 8))

    def test_a_stopped_job_goes_on_from_replicas_that_were_made_equal(self):
        process, run_dir = self.begin(extra='[checkpoint]\nevery = "400ms"\n')
        self.stop_and_resume(process, run_dir)

    def test_records_that_an_operator_skips_are_in_no_replica(self):
        process, run_dir = self.begin(delay="30ms")
        self.ask("stop", run_dir, "--reason", "a drill")
        process.communicate(timeout=60)
        self.ask("data", "skip", run_dir, "11500:11600", "--reason", "a drill")
        self.ask("run", "--resume", run_dir)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout)
        accounts = json.loads(audit.stdout)["epochs"]
        skipped = [e["skipped"] for e in accounts]
        self.assertGreaterEqual(sum(skipped), 100, accounts)
        self.assertEqual([e["once"] for e in accounts], [self.RECORDS - n for n in skipped])
        values = tally.counts(run_dir)
        self.assertLessEqual(max(values), self.EPOCHS)
        self.assertEqual(sum(self.EPOCHS - v for v in values), sum(skipped))

    def test_nd_gives_a_slow_worker_smaller_batches(self):
        slow = ('[control]\nsolution = "nd"\nmode = "act"\ntransient_window = "1s"\n'
                'persistent_window = "3s"\n[[inject]]\nworkers = ["*"]\n'
                'delay_per_sample = "500us"\n[[inject]]\nworkers = ["w3"]\nslowdown = 4.0\n')
        process, run_dir = self.begin(workers=4, delay="", extra=slow, samples=500)
        summary = self.end(process, run_dir)
        samples = {w["id"]: w["samples"] for w in summary["workers"]}
        others = min(n for w, n in samples.items() if w != "w3")
        self.assertLess(samples["w3"], 0.8 * others, samples)
        self.assertGreater(len(summary["actions"]), 0)


@needs_trainer
class DsSyncQuality(tally.TallyTest):
    def test_mnist_reaches_97_percent(self):
        folder = unpack("mnist", self.dir)
        for archive in folder.glob("*.gz"):
            gunzip(archive)
        text = (jobs.mnist(folder, workers=4, epochs=4).replace("allreduce", "ds-sync")
                .replace('optimizer = "adam"', 'optimizer = "sgd"\nmomentum = 0.9')
                .replace("lr = 1e-3", "lr = 0.05"))
        run = self.run_job(self.write("job.toml", text))
        self.assert_done(run)
        self.assert_once(run, 4, 60000)
        self.assertGreaterEqual(max(e["eval"]["accuracy"] for e in run.summary["epochs"]), 0.97)


if __name__ == "__main__":
    unittest.main()
