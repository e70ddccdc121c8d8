"""Records that a program skips are accounted exactly, while everything is killed at random: those that are
not in the model are those that the audit says were skipped."""
import array
import collections
import json
import unittest

import python_jobs
import kills

import antdt

EPOCHS = kills.EPOCHS


def torn(records):
    return range(0, records, 29)


def busy(records):
    """They are skipped by some attempts and trained by others."""
    return [r for r in range(0, records, 31) if r % 29 != 0]


@python_jobs.needs_torch
class Skips(kills.Kills, python_jobs.PythonJobs):
    records, kills = 12000, 6

    def job_with(self, extra):
        return self.toml("skips.py", self.records, 0.02, records=self.records, epochs=EPOCHS, batch=128,
                         extra=extra)

    @staticmethod
    def is_worker(command):
        return "skips.py" in command and "python" in command.split(" ", 1)[0]

    def counts(self, run_dir):
        values = array.array("f")
        values.frombytes(antdt.Checkpoint(run_dir).read("model/counts"))
        return values

    def audit(self, run_dir):
        done = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["epochs"]

    def assert_exact(self, summary, run_dir, records, epochs):
        """The model, the audit and the summary agree: every record was trained or skipped once an epoch."""
        trained = self.counts(run_dir)
        self.assertEqual(len(trained), records)
        sometimes = set(busy(records))
        wrong = {r: n for r, n in enumerate(trained)
                 if n != (0 if r % 29 == 0 else epochs) and r not in sometimes}
        self.assertEqual(wrong, {})
        self.assertLessEqual(max(trained), epochs)
        skipped = collections.Counter()
        for epoch in self.audit(run_dir):
            self.assertEqual((epoch["repeated"], epoch["lost"]), (0, 0), epoch)
            self.assertEqual(epoch["once"] + epoch["skipped"], records, epoch)
            reasons = {s["reason"]: s["records"] for s in epoch["skipped_by_program"]}
            self.assertEqual(sum(reasons.values()), epoch["skipped"], epoch)
            self.assertEqual(reasons["torn"], len(torn(records)), epoch)
            skipped.update(reasons)
        self.assertEqual(set(skipped), {"torn", "busy"})
        self.assertEqual(skipped["busy"], sum(epochs - int(trained[r]) for r in sometimes))
        self.assertEqual(summary["samples_trained"], sum(map(int, trained)))
        self.assertEqual(summary["samples_skipped"], sum(skipped.values()))
        self.assertEqual({s["reason"]: s["samples"] for s in summary["skipped_by_program"]}, dict(skipped))
        listed = {json.loads(line)["record"] for path in run_dir.glob("skipped-w*.jsonl")
                  for line in path.read_text().splitlines()}
        self.assertLessEqual(set(torn(records)), listed)
        self.assertLessEqual(listed, set(torn(records)) | sometimes)

    def test_random_kills_of_everything_change_no_account(self):
        self.check_random_kills()

    def test_what_is_skipped_is_shown_by_reason(self):
        run = self.run_job(self.toml("skips.py", 2900, 0.0, records=2900, workers=2, epochs=1))
        self.assert_done(run)
        [epoch] = self.audit(run.dir)
        reasons = [{"reason": "torn", "records": 100}, {"reason": "busy", "records": 45}]
        self.assertCountEqual(epoch["skipped_by_program"], reasons)
        self.assertEqual((epoch["once"], epoch["skipped"]), (2755, 145))
        table = self.antdt("data", "audit", run.dir).stdout
        self.assertIn("epoch 1: the program skipped 100: torn", table)
        self.assertIn("145 samples skipped by the program, see RUN/skipped-*.jsonl: torn (100), busy (45)",
                      run.out + run.err)
        self.assert_nothing_left()

    def test_a_world_of_one_skips_as_well(self):
        done = self.run_alone(python_jobs.PROGRAMS / "skips.py", 2900, 0.0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout.split()[-1]), 2 * 2755)


if __name__ == "__main__":
    unittest.main()
