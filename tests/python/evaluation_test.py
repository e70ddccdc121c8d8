"""job.evaluate in a job is a phase of its ledger: all members evaluate parts of the data, and each
gets the result that one process would compute."""
import json
import math
import unittest

import python_jobs
from harness import await_true, processes_of

RECORDS, EVALUATED, EPOCHS = 600, 1500, 2
SUMS = {"odd": EVALUATED // 2, "records/squared": sum(i * i for i in range(EVALUATED))}
# The result of one process: the same functions over all records.
WHOLE = """
import sys
sys.path.insert(0, {programs!r})
sys.argv = ["", "", "0", "0"]
import torch, evaluation
i = torch.arange({count})
right = (evaluation.score(i) > 0.5) == (evaluation.label(i) > 0)
negatives = evaluation.score(i)[evaluation.label(i) == 0]
positives = evaluation.score(i)[evaluation.label(i) > 0]
pairs = positives[:, None] - negatives[None, :]
auc = ((pairs > 0).double() + 0.5 * (pairs == 0).double()).mean().item()
print(evaluation.loss(i).mean().item(), right.double().mean().item(), auc)
"""


@python_jobs.needs_torch
class Evaluation(python_jobs.PythonJobs):
    def job_of(self, workers, delay=0.0, *more):
        job = self.toml("evaluation.py", self.dir, RECORDS, EVALUATED, delay, *more, workers=workers,
                        records=RECORDS, epochs=EPOCHS)
        text = job.read_text()
        job.write_text(text.replace("[batch]", f"eval_records = {EVALUATED}\n[batch]"))
        return job

    def whole(self):
        program = self.write("whole.py", WHOLE.format(programs=str(python_jobs.PROGRAMS),
                                                      count=EVALUATED))
        done = self.run_alone(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(value) for value in done.stdout.split()]

    def notes(self):
        """(records that were evaluated, results that members got), each a list by epoch."""
        seen, found = [[] for _ in range(EPOCHS)], [[] for _ in range(EPOCHS)]
        for path in self.dir.glob("notes-*"):
            for line in map(json.loads, path.read_text().splitlines()):
                if "found" in line:
                    found[line["epoch"]].append(line["found"])
                else:
                    seen[line["epoch"]] += line["evaluated"]
        return seen, found

    def check_found(self, found, summary):
        loss, accuracy, auc = self.whole()
        for told in found:
            self.assertEqual(told[0], EVALUATED)
            self.assertEqual(told[4], SUMS)
            for value, wanted in zip(told[1:4], (loss, accuracy, auc)):
                self.assertTrue(math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-4), (told, wanted))
            self.assertAlmostEqual(told[1], loss, 9)
            self.assertAlmostEqual(told[2], accuracy, 12)
        for epoch in summary["epochs"]:
            self.assertAlmostEqual(epoch["eval"]["log_loss"], loss, 9)
            self.assertEqual(epoch["eval"]["records"], EVALUATED)
            self.assertEqual(epoch["eval"]["sums"], SUMS)

    def test_each_record_is_evaluated_once_and_every_member_gets_the_sums(self):
        run = self.run_job(self.job_of(3))
        self.assert_done(run)
        self.assert_once(run, EPOCHS, RECORDS)
        seen, found = self.notes()
        for epoch in range(EPOCHS):
            self.assertEqual(sorted(seen[epoch]), list(range(EVALUATED)))
            self.assertEqual(len(found[epoch]), 3)
        self.check_found(sum(found, []), run.summary)
        self.assert_nothing_left()

    def test_a_job_whose_loss_is_not_a_number_goes_on(self):
        run = self.run_job(self.job_of(2, 0.0, "diverged"))
        self.assert_done(run)
        _, found = self.notes()
        for _, loss, accuracy, _, sums in sum(found, []):
            self.assertTrue(math.isnan(loss))
            self.assertEqual((accuracy, sums), (self.whole()[1], SUMS))
        for epoch in run.summary["epochs"]:
            self.assertIsNone(epoch["eval"]["log_loss"])
        self.assert_nothing_left()

    def test_the_figures_are_the_same_when_a_member_dies_in_the_evaluation(self):
        process, run_dir = self.start_job(self.job_of(3, 0.05))
        self.await_status(run_dir, lambda s: s["state"] == "evaluating", 60, "an evaluation")
        victims = [pid for pid, command in processes_of(str(self.dir)) if "evaluation.py" in command
                   and "python" in command.split(" ", 1)[0]]
        self.kill(min(victims))
        summary = self.finish(process, run_dir)
        self.assertGreater(summary["generations"], 1)
        seen, found = self.notes()
        self.assertEqual(set(seen[0]), set(range(EVALUATED)))
        self.assertGreaterEqual(len(found[0]), 2)
        self.check_found(sum(found, []), summary)
        self.assert_nothing_left()

    def test_the_figures_are_the_same_when_the_job_daemon_dies_in_the_evaluation(self):
        process, run_dir = self.start_job(self.job_of(3, 0.05))
        await_true(lambda: len(self.notes()[0][0]) > 300, 60, "an evaluation that is under way")
        self.kill(self.jobd_pid(run_dir))
        summary = self.finish(process, run_dir)
        _, found = self.notes()
        self.assertGreaterEqual(len(found[0]), 3)
        self.check_found(sum(found, []), summary)
        shown = self.antdt("status", run_dir).stdout
        self.assertRegex(shown, r"accuracy +odd +records/squared")
        self.assert_nothing_left()

    def ordered(self, *words):
        done = self.antdt(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_job_stopped_in_an_evaluation_loses_nothing_and_goes_on_with_it(self):
        job = self.job_of(2, 1)  # so that some batches are left when the order comes
        job.write_text(job.read_text() + '[checkpoint]\nevery = "0s"\n')
        process, run_dir = self.start_job(job)
        await_true(lambda: len(self.notes()[0][0]) > 300, 60, "an evaluation that is under way")
        self.ordered("stop", run_dir)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, self.why(out, err, run_dir))
        self.assertEqual(len(list((run_dir / "checkpoints").glob("s*"))), 1,
                         "what was trained is kept, though no checkpoint was ever due")
        self.assertEqual(self.notes()[1][0], [], "no member has the result yet")
        self.ordered("run", "--resume", run_dir)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["lineages"], 2)
        for epoch in json.loads(self.ordered("data", "audit", run_dir, "--json"))["epochs"]:
            self.assertEqual((epoch["once"], epoch["repeated"], epoch["lost"]), (RECORDS, 0, 0))
        seen, found = self.notes()
        self.assertEqual(set(seen[0]), set(range(EVALUATED)))
        self.assertEqual([len(of) for of in found], [2, 2])
        self.check_found(sum(found, []), summary)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
