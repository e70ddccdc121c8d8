"""Layers that are frozen, and trained again, between epochs: on all members alike, also on those that
join after it."""
import collections
import json
import unittest

import python_jobs

RECORDS, EPOCHS, WORKERS = 1200, 3, 3


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

    def members(self, run_dir, samples):
        """The processes of the members, once that many samples are trained and all have joined."""
        def joined(status):
            return [w["pid"] for w in status["workers"] if w["state"] == "joined" and w["pid"] > 0]
        return joined(self.await_status(
            run_dir, lambda s: (s["state"] == "training" and s["samples_done"] >= samples
                                and len(joined(s)) == WORKERS),
            120, f"{samples} samples trained, and {WORKERS} members"))

    def test_members_stay_alike_though_some_join_when_it_was_done(self):
        for python in python_jobs.PYTHONS:
            with self.subTest(python):
                for path in self.dir.glob("notes-*"):
                    path.unlink()
                job = self.toml("freezing.py", self.dir, RECORDS, 0.03, WORKERS, python=python,
                                workers=WORKERS, records=RECORDS, epochs=EPOCHS, batch=48)
                process, run_dir = self.start_job(job)
                for share in (0.45, 0.75):  # amid the epochs 1 and 2
                    self.kill(self.members(run_dir, share * RECORDS * EPOCHS)[0])
                summary = self.finish(process, run_dir)
                self.assertGreaterEqual(summary["generations"], 4)  # two were killed, and one joined
                self.check(self.notes())
                self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
