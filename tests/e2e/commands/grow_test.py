"""`antdt run --resume --grow`: records that were added behind the old ones are trained from the next
epoch on."""

import json
import unittest

import shared  # noqa: F401 (finds what follows)
import jobs
import tally
from harness import needs_trainer

BEGAN = 3000
LINES = 700   # added to the last file
FILE = 500    # in a file of their own
BATCH = 64
EPOCHS = 3


@needs_trainer
class Grow(tally.TallyTest):
    def setUp(self):
        super().setUp()
        done = self.antdt("data", "synth", "criteo", "--rows", BEGAN + LINES + FILE, "--seed", 5,
                          "--out", self.dir / "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.lines = (self.dir / "all" / "train.tsv").read_text().splitlines(keepends=True)
        self.first = self.dir / "first.tsv"
        self.second = self.dir / "second.tsv"
        self.first.write_text("".join(self.lines[:BEGAN]))

    def job(self, delay="20ms", more="", epochs=EPOCHS):
        text = jobs.ctr(self.first, self.dir / "all" / "eval.tsv", model="lr", epochs=epochs,
                        batch=BATCH, extra=f'[[inject]]\nworkers = ["*"]\ndelay = "{delay}"\n')
        return self.write("job.toml", text.replace("[data]\n", f"[data]\n{more}"))

    def stopped_in_the_second_epoch(self, **job):
        process, run_dir = self.start_job(self.job(**job))
        self.await_training(run_dir, samples=BEGAN + 500)
        self.assertEqual(self.antdt("stop", run_dir, timeout=60).returncode, 0)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, out + err)
        return run_dir

    def resume(self, run_dir, *args):
        return self.antdt("run", "--resume", run_dir, *args, timeout=180)

    def records_by_epoch(self, run_dir):
        """What `antdt data which` tells of all steps in the model."""
        epochs, step = {}, 1
        while True:
            done = self.antdt("data", "which", run_dir, "--step", step, "--json")
            if done.returncode == 2:  # no such step any more
                return epochs
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["unknown"], 0)
            if found["undone_by"] is None and found["records_total"] > 0:
                epochs.setdefault(found["epoch"], []).extend(
                    r for worker in found["workers"] for r in worker["records"])
            step += 1

    def test_the_next_epoch_sees_what_was_added(self):
        run_dir = self.stopped_in_the_second_epoch()
        with open(self.first, "a") as file:
            file.writelines(self.lines[BEGAN:BEGAN + LINES])
        self.second.write_text("".join(self.lines[BEGAN + LINES:]))
        refused = self.resume(run_dir)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("--grow", refused.stderr)
        resumed = self.resume(run_dir, "--grow", "--set",
                              f'data.paths=["{self.first}", "{self.second}"]')
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        now = BEGAN + LINES + FILE
        self.assertIn(f"{LINES + FILE} records were added: {now} from the next epoch on, {BEGAN} in "
                      "the present one", resumed.stdout)
        audit = self.antdt("data", "audit", run_dir, "--json")
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        found = [(e["records"], e["once"], e["repeated"], e["lost"])
                 for e in json.loads(audit.stdout)["epochs"]]
        self.assertEqual(found, [(BEGAN, BEGAN, 0, 0), (BEGAN, BEGAN, 0, 0), (now, now, 0, 0)])
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["samples_trained"], 2 * BEGAN + now)
        self.assertIn(f"training data from {BEGAN} to {now} records",
                      (run_dir / "events.jsonl").read_text())
        epochs = self.records_by_epoch(run_dir)
        for epoch, records in ((0, BEGAN), (1, BEGAN), (2, now)):
            self.assertEqual(sorted(epochs[epoch]), list(range(records)), f"epoch {epoch}")
        self.assertEqual(json.loads((run_dir / "data.json").read_text())["began_with"], BEGAN)

    def test_what_was_changed_otherwise_is_refused(self):
        run_dir = self.stopped_in_the_second_epoch(more='on_bad_record = '
                                                        '{ action = "quarantine", max = 9 }\n')
        before = (run_dir / "data.json").read_text()
        changed = list(self.lines[:BEGAN + LINES])
        changed[7] = ("1" if changed[7][0] == "0" else "0") + changed[7][1:]
        for text, args, words in (
                ("".join(changed), (), "what the run began with is not there any more"),
                ("".join(self.lines[:BEGAN - 5]), (), "fewer than before"),
                ("".join(self.lines[:BEGAN]) + self.lines[BEGAN],
                 ("--set", f'data.paths=["{self.second}", "{self.first}"]'),
                 "what the run began with is not there any more"),
                ("".join(self.lines[:BEGAN + 1]), ("--set", "data.hash_buckets=32768"),
                 "data.hash_buckets: a run that is resumed cannot change this")):
            self.first.write_text(text)
            self.second.write_text("".join(self.lines[BEGAN:]))
            refused = self.resume(run_dir, "--grow", *args)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(words, refused.stderr)
        self.assertEqual((run_dir / "data.json").read_text(), before)
        # Nothing was added after all.
        self.first.write_text("".join(self.lines[:BEGAN]))
        resumed = self.resume(run_dir, "--grow")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertIn("nothing was added", resumed.stdout)

    def test_in_the_last_epoch_it_is_said_that_nothing_sees_them(self):
        run_dir = self.stopped_in_the_second_epoch(epochs=2)
        with open(self.first, "a") as file:
            file.writelines(self.lines[BEGAN:])
        resumed = self.resume(run_dir, "--grow")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertIn("the last of the run's 2 epochs has begun", resumed.stderr)
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assertEqual(summary["samples_trained"], 2 * BEGAN)

    def test_lines_behind_an_unfinished_line_are_refused(self):
        self.first.write_text("".join(self.lines[:BEGAN]).rstrip("\n"))
        run_dir = self.stopped_in_the_second_epoch()
        self.first.write_text("".join(self.lines[:BEGAN + 3]))
        refused = self.resume(run_dir, "--grow")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("whose last line had no end", refused.stderr)


if __name__ == "__main__":
    unittest.main()
