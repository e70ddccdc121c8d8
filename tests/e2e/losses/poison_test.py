"""The program dies at one record, on every worker. The record is found, named and skipped, and all
others are trained once."""

import json
import re
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import needs_trainer

RECORDS = 12000
POISON = 7777


@needs_trainer
class Poison(tally.TallyTest):
    def job(self):
        text = tally.job(workers=3, records=RECORDS, epochs=1, batch=60, delay="5ms",
                         extra='[checkpoint]\nevery = "500ms"\n')
        return self.write("job.toml", text.replace(
            'command = ["antdt-trainer"]',
            f'command = ["antdt-trainer"]\nenv = {{ TALLY_POISON = "{POISON}" }}'))

    def test_a_record_that_kills_every_worker_is_named_and_can_be_left_out(self):
        run = self.run_job(self.job())
        self.assertEqual(run.code, 4, run.explain())
        causes = [f["cause"] for f in run.summary["failures"]]
        self.assertEqual(len(causes), 3, causes)
        for cause in causes:
            self.assertIn(f"record {POISON} is poison", cause)
        # The last lines on the terminal say what to do.
        last = run.err.splitlines()[-1]
        named = re.search(r"first cause: positions (\d+):(\d+) of epoch 1 were held by 3 "
                          r"workers that were lost", last)
        self.assertTrue(named, run.err)
        first, end = map(int, named.groups())
        self.assertLess(end - first, 200, "the range is small: a few steps of one worker")
        command = re.search(r"antdt (data skip .*) --reason TEXT$", last)
        self.assertTrue(command, last)
        args = command.group(1).split()
        self.assertEqual(args, ["data", "skip", str(run.dir), f"{first}:{end}", "--epoch", "1"])

        skipped = self.antdt(*args, "--reason", "the program dies of it")
        self.assertEqual(skipped.returncode, 0, skipped.stderr)
        resumed = self.antdt("run", "--resume", run.dir)
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        audit = json.loads(self.antdt("data", "audit", run.dir, "--json").stdout)
        epoch, = audit["epochs"]
        self.assertEqual((epoch["once"], epoch["skipped"], epoch["repeated"], epoch["lost"]),
                         (RECORDS - (end - first), end - first, 0, 0))
        counts = tally.counts(run.dir)
        without = [i for i, count in enumerate(counts) if count == 0]
        self.assertIn(POISON, without)
        self.assertEqual(len(without), end - first)
        self.assertEqual(set(counts), {0.0, 1.0})
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
