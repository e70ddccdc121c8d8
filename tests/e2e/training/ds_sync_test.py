"""Workers that average their parameters in groups (trainer.sync = "ds-sync"): each record is in the
merged model once, whoever leaves, comes, is slow, or goes on from a checkpoint."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import gunzip, needs_trainer, unpack

RECORDS, EPOCHS = 12_000, 2


@needs_trainer
class DsSync(tally.TallyTest):
    def begin(self, workers=6, delay="10ms", extra="", samples=1500):
        process, run_dir = self.start_job(self.write("job.toml", tally.job(
            workers=workers, records=RECORDS, epochs=EPOCHS, batch=96, delay=delay, extra=extra,
            sync="ds-sync")))
        self.await_training(run_dir, samples=samples)
        return process, run_dir

    def ask(self, *words):
        done = self.antdt(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def await_more(self, run_dir, records=1000):
        self.await_training(run_dir, samples=self.await_answer(run_dir)["samples_done"] + records)

    def end(self, process, run_dir):
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)
        self.assert_nothing_left()
        return summary

    def test_every_record_is_in_the_merged_model_once_an_epoch(self):
        # One worker, one group of all (2, 3), full grids (4, 9), and others (5).
        for workers in (1, 2, 3, 4, 5, 9):
            with self.subTest(workers=workers):
                text = tally.job(workers=workers, records=2000, epochs=2, batch=90, sync="ds-sync")
                run = self.run_job(self.write(f"{workers}.toml", text))
                self.assert_done(run)
                self.assert_exact(run.summary, run.dir, 2000, 2)
                if workers > 1:
                    traffic = run.summary["traffic"]
                    self.assertGreater(traffic["parameters_bytes"], 0)
                    self.assertEqual(traffic["gradients_bytes"], 0, "each keeps its own")

    def test_workers_leave_and_come(self):
        process, run_dir = self.begin(delay="80ms")  # it outlasts what is asked of it
        self.assertIn("w1 has left", self.ask("evict", run_dir, "w1", "--reason", "a drill"))
        self.await_more(run_dir)
        for count in (3, 8):
            self.ask("resize", run_dir, count)
            self.await_status(
                run_dir, lambda s, n=count: sum(w["rank"] is not None for w in s["workers"]) == n,
                60, f"{count} workers train")
            self.await_more(run_dir)
        self.end(process, run_dir)

    def test_a_stopped_job_goes_on_from_replicas_that_were_made_equal(self):
        process, run_dir = self.begin(extra='[checkpoint]\nevery = "400ms"\n')
        self.ask("stop", run_dir, "--reason", "a drill")
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        values = tally.counts(run_dir)
        self.assertLessEqual(max(values), EPOCHS)
        self.assertGreaterEqual(sum(values), 1500 - 96, "what was trained before the stop")
        self.assertEqual(sum(values) % 96, 0, "whole steps of all workers")
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["lineages"], 2)
        self.assert_exact(summary, run_dir, RECORDS, EPOCHS)

    def test_records_that_an_operator_skips_are_in_no_replica(self):
        process, run_dir = self.begin(delay="30ms")
        self.ask("stop", run_dir, "--reason", "a drill")
        process.communicate(timeout=60)
        self.ask("data", "skip", run_dir, "11500:11600", "--reason", "a drill")
        resumed = self.antdt("run", "--resume", run_dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout)
        accounts = json.loads(audit.stdout)["epochs"]
        skipped = [e["skipped"] for e in accounts]
        self.assertGreaterEqual(sum(skipped), 100, accounts)
        self.assertEqual([e["once"] for e in accounts], [RECORDS - n for n in skipped])
        values = tally.counts(run_dir)
        self.assertLessEqual(max(values), EPOCHS)
        self.assertEqual(sum(EPOCHS - v for v in values), sum(skipped))

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
