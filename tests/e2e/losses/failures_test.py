"""Workers die, hang and come back; the others go on, and the accounts stay right."""

import json
import signal
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import await_true, needs_trainer

RECORDS = 40000
DELAY = "10ms"  # a batch: some 12 s of training with the sizes here


@needs_trainer
class Failures(tally.TallyTest):
    def begin(self, **options):
        extra = options.pop("extra", "")
        job = self.write("job.toml", tally.job(records=RECORDS, delay=DELAY, extra=extra, **options))
        process, run_dir = self.start_job(job)
        status = self.await_training(run_dir, samples=1000)
        return process, run_dir, {w["id"]: w for w in status["workers"]}

    def finish_exactly(self, process, run_dir):
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, RECORDS, 2)
        self.assert_nothing_left()
        return summary

    def test_survivors_of_a_killed_worker_go_on_and_it_is_started_again(self):
        process, run_dir, workers = self.begin()
        self.kill(workers["w2"]["pid"])
        self.await_status(
            run_dir,
            lambda s: any(w["id"] == "w2" and w["attempt"] == 2 and w["rank"] is not None
                          for w in s["workers"]), 30, "w2 is a member again")
        summary = self.finish_exactly(process, run_dir)
        after = {w["id"]: w for w in summary["workers"]}
        for survivor in ("w0", "w1", "w3"):
            self.assertEqual(after[survivor]["pid"], workers[survivor]["pid"], survivor)
        self.assertEqual(after["w2"]["attempt"], 2)
        self.assertGreaterEqual(summary["generations"], 3)
        failure, = summary["failures"]
        self.assertEqual((failure["worker"], failure["class"], failure["first"]),
                         ("w2", "signal", True))
        self.assertLess(failure["recovered_in_s"], 5)

    def test_a_stopped_worker_is_found_ended_and_replaced(self):
        process, run_dir, workers = self.begin(extra='[failure]\nhang_after = "3s"\n')
        self.kill(workers["w1"]["pid"], signal.SIGSTOP)
        summary = self.finish_exactly(process, run_dir)
        failure, = summary["failures"]
        self.assertEqual((failure["worker"], failure["class"]), ("w1", "hang"))
        self.assertIn("nothing was heard of it for 3 s", failure["cause"])

    def test_two_workers_killed_together_are_one_incident(self):
        process, run_dir, workers = self.begin()
        self.kill(workers["w0"]["pid"])
        self.kill(workers["w3"]["pid"])
        summary = self.finish_exactly(process, run_dir)
        self.assertEqual(sorted(f["worker"] for f in summary["failures"]), ["w0", "w3"])

    def test_all_workers_killed_go_on_from_the_last_checkpoint(self):
        process, run_dir, workers = self.begin(extra='[checkpoint]\nevery = "1s"\n')
        await_true(lambda: list((run_dir / "checkpoints").glob("s*")), 30, "a checkpoint")
        for worker in workers.values():
            self.kill(worker["pid"])
        summary = self.finish_exactly(process, run_dir)
        self.assertEqual(summary["lineages"], 2)

    def test_all_workers_killed_before_any_checkpoint_begin_again(self):
        process, run_dir, workers = self.begin()
        for worker in workers.values():
            self.kill(worker["pid"])
        summary = self.finish_exactly(process, run_dir)
        self.assertEqual(summary["lineages"], 2)

    def test_a_budget_that_is_used_up_ends_the_job_with_its_cause(self):
        process, run_dir, workers = self.begin(extra='[failure]\nbudgets = { signal = 1 }\n')
        self.kill(workers["w2"]["pid"])
        again = self.await_status(
            run_dir,
            lambda s: any(w["id"] == "w2" and w["attempt"] == 2 and w["rank"] is not None
                          for w in s["workers"]), 30, "w2 is a member again")
        self.kill(next(w["pid"] for w in again["workers"] if w["id"] == "w2"))
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, self.why(out, err, run_dir))
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["exit"]["class"], "signal")
        self.assertIn("w2", summary["exit"]["first_cause"])
        self.assertIn("This exceeds failure.budgets.signal = 1;", summary["exit"]["first_cause"])
        self.assertIn("was killed by signal 9", (out + err)[-600:])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
