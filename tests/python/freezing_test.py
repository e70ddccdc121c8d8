"""Layers that are frozen, and trained again, between epochs: on all members alike, also on those that
join after it."""
import collections
import json
import unittest

import python_jobs
from harness import processes_of

RECORDS, EPOCHS = 1200, 3


@python_jobs.needs_torch
class Freezing(python_jobs.PythonJobs):
    def notes(self):
        """By epoch and step: what the members said of it."""
        said = collections.defaultdict(lambda: collections.defaultdict(list))
        for path in self.dir.glob("notes-*"):
            for line in map(json.loads, path.read_text().splitlines()):
                said[line["epoch"]][line["step"]].append((line["layer"], line["model"]))
        return said

    def check(self, notes):
        self.assertEqual(sorted(notes), [0, 1, 2])
        layers = {}
        for epoch, steps in notes.items():
            for step, said in steps.items():
                self.assertEqual(len(set(said)), 1, f"members part at step {step} of epoch {epoch}")
            layers[epoch] = {said[0][0] for said in steps.values()}
        self.assertEqual(len(layers[0]), 1, "it was frozen")
        self.assertGreater(len(layers[1]), 10, "it was trained")
        self.assertEqual(len(layers[2]), 1, "and frozen again")

    def test_members_stay_alike_though_some_join_when_it_was_done(self):
        for python in python_jobs.PYTHONS:
            with self.subTest(python):
                for path in self.dir.glob("notes-*"):
                    path.unlink()
                job = self.toml("freezing.py", self.dir, RECORDS, 0.03, python=python, workers=3,
                                records=RECORDS, epochs=EPOCHS, batch=48)
                process, run_dir = self.start_job(job)
                for share in (0.45, 0.75):  # amid the epochs 1 and 2
                    self.await_training(run_dir, share * RECORDS * EPOCHS)
                    found = [pid for pid, command in processes_of(str(self.dir)) if "freezing.py" in command
                             and "python" in command.split(" ", 1)[0]]
                    self.kill(sorted(found)[0])
                summary = self.finish(process, run_dir)
                self.assertGreater(summary["generations"], 2)
                self.check(self.notes())
                self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
