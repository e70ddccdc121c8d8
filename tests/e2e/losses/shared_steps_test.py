"""Members share their steps: a slow one is helped within each step, and every record counts once,
whoever computed it and whoever dies."""

import json
import os
import unittest

import shared  # noqa: F401 (finds what follows)
import tally
from harness import is_built_in, needs_trainer
from kills import EPOCHS, RECORDS, Kills

SHARE = "[control]\nsolution = \"none\"\nshare_steps = true\n"
# w0 needs 2 ms for a sample, the others 0.4 ms.
SLOW = """
[[inject]]
workers = ["w0"]
delay_per_sample = "1600us"
[[inject]]
workers = ["*"]
delay_per_sample = "400us"
"""


def of_others(summary):
    """How many samples each worker computed for others."""
    return {w["id"]: w.get("samples_of_others", 0) for w in summary["workers"]}


@needs_trainer
class SharedSteps(tally.TallyTest):
    def run_job(self, name, extra):
        text = tally.job(workers=4, records=9600, epochs=1, batch=128, extra=extra)
        process, run_dir = self.start_job(self.write(f"{name}.toml", text))
        out, err = process.communicate(timeout=180)
        self.assertEqual(process.returncode, 0, self.why(out, err, run_dir))
        summary = json.loads((run_dir / "summary.json").read_text())
        self.assert_exact(summary, run_dir, 9600, 1)
        return summary, out

    def test_a_slow_member_is_helped_within_each_step(self):
        alone, said = self.run_job("alone", SLOW)
        self.assertEqual(sum(of_others(alone).values()), 0)
        self.assertNotIn("shared steps", said)
        summary, said = self.run_job("shared", SHARE + SLOW)
        samples = {w["id"]: w["samples"] for w in summary["workers"]}
        self.assertEqual(sum(samples.values()), 9600)
        self.assertLess(samples["w0"], 9600 / 4 / 2, "the others computed most of its part")
        helped = of_others(summary)
        # Its parts are a quarter of the records, but for steps in which records were late.
        self.assertGreater(sum(helped.values()), 0.9 * (9600 / 4 - samples["w0"]))
        self.assertRegex(said, r"shared steps: [0-9,]+ samples \([0-9.]+%\) were computed for other")
        self.assertLess(summary["training_seconds"], alone["training_seconds"] / 1.5)

    def test_a_job_without_a_second_member_has_nothing_to_share(self):
        text = tally.job(workers=1, records=2000, epochs=1, batch=128, extra=SHARE)
        process, run_dir = self.start_job(self.write("one.toml", text))
        summary = self.finish(process, run_dir)
        self.assert_exact(summary, run_dir, 2000, 1)
        self.assertEqual(sum(of_others(summary).values()), 0)


@needs_trainer
class KillsWhileStepsAreShared(Kills):
    kills = int(os.environ.get("ANTDT_KILLS", "30"))

    def job_with(self, extra):
        return self.write("job.toml", tally.job(records=self.records, epochs=EPOCHS, batch=256,
                                                extra=SHARE + extra + SLOW))

    is_worker = staticmethod(is_built_in)

    def test_random_kills_of_everything_lose_nothing(self):
        summary = self.check_random_kills()
        helped = of_others(summary)
        print(f"samples computed for others: {helped}", flush=True)
        # w0 alone leaves the others three quarters of its part, in each step.
        self.assertGreater(sum(helped.values()), RECORDS * EPOCHS / 16)


if __name__ == "__main__":
    unittest.main()
