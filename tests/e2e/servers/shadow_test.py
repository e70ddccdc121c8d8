"""Jobs whose workers keep replicas of the dense parameters and exchange them with a centre on the servers
(sync = "shadow-easgd", "shadow-ma" and "shadow-bmuf")."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
from harness import await_true, needs_trainer
from server_jobs import BUDGETS, ServersTest

ROWS = 12000
WITHIN = 1.05  # of the log loss under ps-bsp


@needs_trainer
class Shadow(ServersTest):
    def setUp(self):
        super().setUp()
        made = self.antdt("data", "synth", "criteo", "--rows", ROWS, "--seed", 5, "--out",
                          self.dir / "data")
        self.assertEqual(made.returncode, 0, made.stderr)

    def job(self, workers=3, trainer="", delay="", sync="shadow-easgd", servers=2, replicas=1, extra=""):
        data = self.dir / "data"
        text = jobs.ctr(data / "train.tsv", data / "eval.tsv", workers=workers, batch=96 * workers,
                        optimizer="adagrad", lr=0.01)
        text = text.replace('sync = "allreduce"', f'sync = "{sync}"\n{trainer}')
        if servers:
            text += f'[roles.server]\ncount = {servers}\nreplicas = {replicas}\n'
        if delay:
            text += f'[[inject]]\nworkers = ["*"]\ndelay = "{delay}"\n'
        return self.write("job.toml", text + extra)

    def exchanges(self, summary):
        return {w["id"]: w["exchanges"] for w in summary["workers"]}

    def test_replicas_are_exchanged_in_the_background_and_the_centre_is_the_model(self):
        run = self.run_job(self.job(delay="5ms"))
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        self.assertGreater(run.summary["epochs"][1]["eval"]["auc"], 0.6, "of the centre")
        for worker, found in self.exchanges(run.summary).items():
            steps = 2 * ROWS / 3 / 96
            self.assertGreater(found["count"], steps / 10, worker)
            self.assertGreaterEqual(found["mean_gap_steps"], 1, worker)
            self.assertGreater(found["mean_gap_ms"], 0, worker)
        self.assertRegex(run.out, r"exchanges: [\d,]+, one in \d+\.\d steps or \d+ ms of a worker; "
                                  r"training waited \d+\.\ds for them")
        self.assert_nothing_left()

    def test_means_of_replicas_are_models_that_learn_nearly_as_one_that_all_train(self):
        losses = {}
        for sync in ("ps-bsp", "shadow-ma", "shadow-bmuf"):
            run = self.run_job(self.job(sync=sync, delay="5ms"))
            self.assert_done(run)
            self.assert_once(run, 2, ROWS)
            losses[sync] = run.summary["epochs"][1]["eval"]["log_loss"]
            if sync == "ps-bsp":
                continue
            self.assertGreater(run.summary["epochs"][1]["eval"]["auc"], 0.6, "of the centre")
            for worker, found in self.exchanges(run.summary).items():
                self.assertGreater(found["count"], 2 * ROWS / 3 / 96 / 10, worker)
        print(losses, flush=True)
        for sync, loss in losses.items():
            self.assertLess(loss, WITHIN * losses["ps-bsp"], sync)
        self.assert_nothing_left()

    def test_in_the_foreground_each_kth_step_waits_for_its_exchange(self):
        run = self.run_job(self.job(trainer="shadow = { every = 4 }"))
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        for worker, found in self.exchanges(run.summary).items():
            self.assertLessEqual(found["mean_gap_steps"], 4, worker)
            self.assertGreater(found["mean_gap_steps"], 3, worker)
            self.assertGreater(found["waited_seconds"], 0, worker)
        self.assert_nothing_left()

    def test_threads_of_a_worker_train_its_replica_together(self):
        job = self.job(workers=2, trainer="shadow = { threads = 2 }")
        job.write_text(job.read_text().replace('model = "deepfm"', 'model = "dlrm"'))
        run = self.run_job(job)
        self.assert_done(run)
        self.assert_once(run, 2, ROWS)
        self.assertGreater(run.summary["epochs"][1]["eval"]["auc"], 0.6, "of the centre")
        self.assert_nothing_left()

    def test_a_lost_worker_is_not_noticed_by_the_others_and_the_audit_is_exact(self):
        process, run_dir = self.start_job(self.job(delay="20ms", extra=BUDGETS))
        before = self.await_training(run_dir, samples=1500)

        def exchanged():
            workers = json.loads(self.antdt("status", run_dir, "--json").stdout)["workers"]
            return all(w.get("exchanges", {}).get("count", 0) > 0 for w in workers) and workers
        await_true(exchanged, 60, "each worker has exchanged")
        victim = next(w for w in before["workers"] if w["id"] == "w1")
        self.kill(victim["pid"])
        summary = self.finish(process, run_dir)
        self.assertEqual((summary["lineages"], summary["generations"]), (1, 1))
        after = {w["id"]: w for w in summary["workers"]}
        for w in before["workers"]:
            if w["id"] != "w1":
                self.assertEqual(after[w["id"]]["pid"], w["pid"])
        self.assertEqual(after["w1"]["attempt"], 2)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (ROWS, 0, 0))
        self.assert_nothing_left()

    def test_whoever_is_killed_whenever_every_record_counts_once(self):
        run_dir, summary = self.kill_at_random(
            "shadow-easgd", self.job(delay="60ms", extra=BUDGETS), 2 * ROWS)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        for epoch in json.loads(audit.stdout)["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (ROWS, 0, 0))
        self.assertGreater(summary["epochs"][1]["eval"]["auc"], 0.5, "of the centre")
        self.assert_nothing_left()

    def test_under_a_mean_of_replicas_every_record_counts_once_too(self):
        for sync, replicas in (("shadow-ma", 1), ("shadow-bmuf", 2)):
            run_dir, summary = self.kill_at_random(
                sync, self.job(sync=sync, replicas=replicas, delay="60ms", extra=BUDGETS), 2 * ROWS)
            audit = self.antdt("data", "audit", run_dir, "--json")
            self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
            for epoch in json.loads(audit.stdout)["epochs"]:
                self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (ROWS, 0, 0))
            self.assertGreater(summary["epochs"][1]["eval"]["auc"], 0.5, "of the centre")
        self.assert_nothing_left()

    def test_a_job_that_cannot_have_replicas_is_refused(self):
        none = self.antdt("run", self.job(servers=0), "--dry-run")
        self.assertEqual(none.returncode, 2, none.stdout)
        self.assertIn("and the job has none: add [roles.server]", none.stderr + none.stdout)
        wrong = self.antdt("run", self.job(sync="ps-asp", trainer="shadow = { every = 3 }"), "--dry-run")
        self.assertEqual(wrong.returncode, 2, wrong.stdout)
        self.assertIn('trainer.shadow.every: is for trainer.sync = "shadow-easgd", "shadow-ma" or '
                      '"shadow-bmuf", not "ps-asp"', wrong.stderr + wrong.stdout)
        apart = self.antdt("run", self.job(trainer="shadow = { alpha = 0.5 }"), "--dry-run")
        self.assertEqual(apart.returncode, 2, apart.stdout)
        self.assertIn("trainer.shadow.alpha: with 3 workers that exchange at once, 0.5 moves",
                      apart.stderr + apart.stdout)
        both = self.antdt("run", self.job(trainer="threads = 2\nshadow = { threads = 2 }"), "--dry-run")
        self.assertEqual(both.returncode, 2, both.stdout)
        self.assertIn("trainer.shadow.threads: each of 2 threads computes its part of a batch alone",
                      both.stderr + both.stdout)


if __name__ == "__main__":
    unittest.main()
