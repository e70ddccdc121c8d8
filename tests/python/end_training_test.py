"""A program that ends the training before its last epoch: every member stops at the same step, the model
is kept, the job is done, and what was not trained is accounted with the program's reason."""
import array
import json
import unittest

import python_jobs
from harness import await_true, processes_of

import antdt

RECORDS, BATCH, EPOCHS = 3000, 60, 5


@python_jobs.needs_torch
class EndTraining(python_jobs.PythonJobs):
    def job_of(self, who, unit, number, workers=3, delay=0.0, evaluated=100, extra=""):
        path = self.toml("ends.py", self.dir, RECORDS, who, unit, number, delay, workers=workers,
                         records=RECORDS, epochs=EPOCHS, batch=BATCH, extra=extra)
        if evaluated:
            path.write_text(path.read_text().replace("[batch]", f"eval_records = {evaluated}\n[batch]"))
        return path

    def notes(self):
        return [path.read_text().splitlines() for path in self.dir.glob("notes-*")]

    def check(self, summary, run_dir, epochs, reason, whole):
        """`epochs` were trained, the last of which to its end if `whole`. Returns how much of it."""
        last = summary["epochs"][-1]["samples"]
        cut = RECORDS - last
        self.assertEqual(cut == 0, whole, summary["epochs"])
        self.assertEqual((summary["state"], summary["exit"]["code"]), ("done", 0), summary["exit"])
        self.assertEqual(summary["training_ended"], {"epochs": epochs, "reason": reason})
        self.assertEqual([e["samples"] for e in summary["epochs"]],
                         [RECORDS] * (epochs - 1) + [RECORDS - cut])
        self.assertEqual((summary["samples_lost"], summary["samples_repeated"]), (0, 0))
        self.assertEqual(summary["samples_trained"], epochs * RECORDS - cut)
        self.assertEqual(summary["samples_total"], epochs * RECORDS - cut)
        self.assertEqual(summary["samples_skipped"], cut)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        accounts = json.loads(audit.stdout)["epochs"]
        self.assertEqual([(a["once"], a["skipped"]) for a in accounts],
                         [(RECORDS, 0)] * (epochs - 1) + [(RECORDS - cut, cut)])
        left = [{"reason": f"the training was ended: {reason}", "records": cut}] if cut else []
        self.assertEqual(accounts[-1]["skipped_by_program"], left)
        counts = array.array("f")
        counts.frombytes(antdt.Checkpoint(run_dir).read("model/counts"))
        self.assertEqual(sum(counts), epochs * RECORDS - cut)
        self.assertLessEqual(max(counts) - min(counts), 1)
        self.assert_nothing_left()
        return last

    def test_all_members_end_it_behind_an_epoch(self):
        run = self.run_job(self.job_of("all", "epochs", 2))
        self.assert_done(run)
        self.check(run.summary, run.dir, 2, "enough after 2 epochs", True)
        self.assertEqual([e["eval"]["records"] for e in run.summary["epochs"]], [100, 100])
        for lines in self.notes():
            self.assertEqual(lines, ["evaluated epoch 0: True", "evaluated epoch 1: True", "ends",
                                     "behind the loop"])
        self.assertIn("the program ended the training in epoch 2: enough after 2 epochs", run.out)

    def test_one_member_ends_it_behind_an_epoch(self):
        run = self.run_job(self.job_of("one", "epochs", 1, evaluated=0))
        self.assert_done(run)
        self.check(run.summary, run.dir, 1, "enough after 1 epochs", True)
        self.assertEqual([lines[-1] for lines in self.notes()], ["behind the loop"] * 3)

    def test_one_member_ends_it_within_an_epoch(self):
        run = self.run_job(self.job_of("one", "records", 4200))
        self.assert_done(run)
        last = self.check(run.summary, run.dir, 2, "enough after 4200 records", False)
        self.assertIn(last, range(1200, 1200 + BATCH))
        for lines in self.notes():
            self.assertEqual([line for line in lines if line != "ends"],
                             ["evaluated epoch 0: True", "evaluated epoch 1: True", "behind the loop"])

    def test_all_members_end_it_with_the_last_step_of_an_epoch(self):
        run = self.run_job(self.job_of("all", "records", RECORDS))
        self.assert_done(run)
        self.check(run.summary, run.dir, 1, "enough after 3000 records", True)
        for lines in self.notes():
            self.assertEqual(lines, ["ends", "evaluated epoch 0: True", "behind the loop"])

    def test_all_members_end_it_with_the_first_step(self):
        run = self.run_job(self.job_of("all", "records", 1, workers=2, evaluated=0))
        self.assert_done(run)
        self.assertEqual(self.check(run.summary, run.dir, 1, "enough after 1 records", False), BATCH)

    def end_and_kill(self, strike):
        """The first member that ends the training is the sign."""
        path = self.job_of("all", "records", 3600, delay=0.01, extra='[checkpoint]\nevery = "300ms"\n[failure]\n'
                           "budgets = { signal = 100, collective = 100 }\n")
        process, run_dir = self.start_job(path)
        await_true(lambda: any("ends" in lines for lines in self.notes()), 60, "the training to end")
        strike(run_dir)
        return self.finish(process, run_dir), run_dir

    def workers(self):
        return [pid for pid, command in processes_of(str(self.dir))
                if "ends.py" in command and "python" in command.split(" ", 1)[0]]

    def test_a_worker_dies_as_the_training_ends(self):
        summary, run_dir = self.end_and_kill(lambda _: self.kill(self.workers()[0]))
        self.check(summary, run_dir, 2, "enough after 3600 records", False)

    def test_the_job_daemon_dies_as_the_training_ends(self):
        summary, run_dir = self.end_and_kill(lambda run_dir: self.kill(self.jobd_pid(run_dir)))
        self.check(summary, run_dir, 2, "enough after 3600 records", False)

    def test_all_workers_die_as_the_training_ends(self):
        """They go back to a checkpoint and end it there, unless its end was kept before."""
        def strike(_):
            for pid in self.workers():
                self.kill(pid)
        summary, run_dir = self.end_and_kill(strike)
        self.check(summary, run_dir, 2, "enough after 3600 records", False)

    def test_a_world_of_one(self):
        for unit, number, trained in (("epochs", 2, 2 * RECORDS), ("records", 3500, 3500)):
            with self.subTest(unit):
                done = self.run_alone(python_jobs.PROGRAMS / "ends.py", self.dir, RECORDS, "all", unit,
                                      number)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.split(), [str(trained), "2"])

    def test_a_reason_that_is_none_is_refused(self):
        run = self.run_alone(self.write("wrong.py", "import antdt.torch as adt; adt.init().end_training(7)"))
        self.assertIn("job.end_training(7): give the reason, a text that is not empty", run.stderr)
        run = self.run_alone(self.write("early.py", "import antdt.torch as adt; adt.init().end_training('x')"))
        self.assertIn("job.end_training comes after the first epoch has begun", run.stderr)


if __name__ == "__main__":
    unittest.main()
